//! The file of `--token-auth-file`: bearer tokens and their users.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use csv::ReaderBuilder;
use homeostat_apiserver::User;

/// Returns the tokens of a file and their users, as kube-apiserver reads them: lines of a token, a
/// user name, a uid and, in quotes, the groups. A later line replaces one with the same token.
///
/// # Errors
///
/// Fails if a line has fewer than three columns, or is not in UTF-8.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<(String, User)>> {
    let reader =
        ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let (mut tokens, mut known) = (Vec::new(), BTreeSet::new());
    for record in reader.into_records() {
        let record = record.context("a line is not readable")?;
        let number = record.position().map_or(0, csv::Position::line);
        let columns: Vec<&str> = record.iter().collect();
        let &[token, name, uid, ref rest @ ..] = columns.as_slice() else {
            let found = columns.len();
            bail!("line {number} needs 3 columns (token, user name, uid) and has {found}");
        };
        if token.is_empty() {
            tracing::warn!(number, "the line of the token file has no token");
            continue;
        }
        if !known.insert(token.to_owned()) {
            tracing::warn!(number, "the token of the line stands further up in the file, too");
        }
        let groups = rest.first().into_iter().flat_map(|groups| groups.split(','));
        let user = User::new(name).with_uid(uid);
        let user = groups.filter(|group| !group.is_empty()).fold(user, User::in_group);
        tokens.push((token.to_owned(), user));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_users_and_their_groups() {
        let text = "a,ann,u1\n\nb,ben,u2,\"x,y\"\n,cid,u3\na,\"dan, jr.\",u4,z,more\n";
        let groups =
            |user: User, names: &[&str]| names.iter().fold(user, |user, name| user.in_group(*name));
        let expected = [
            ("a".to_owned(), User::new("ann").with_uid("u1")),
            ("b".to_owned(), groups(User::new("ben").with_uid("u2"), &["x", "y"])),
            ("a".to_owned(), groups(User::new("dan, jr.").with_uid("u4"), &["z"])),
        ];
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn line_of_two_columns_is_an_error() {
        let error = parse("a,ann,u1\nb,ben\n").unwrap_err().to_string();
        assert_eq!(error, "line 2 needs 3 columns (token, user name, uid) and has 2");
    }
}
