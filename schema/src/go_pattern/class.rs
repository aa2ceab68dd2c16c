//! Classes of characters in brackets.

use super::{PatternError, escape};

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Reads a class: its text for the crate, and the text after it.
pub(super) fn read(text: &str) -> Result<(String, &str), PatternError> {
    let mut rest = &text[1..];
    let mut written = "[".to_owned();
    if let Some(after) = rest.strip_prefix('^') {
        written.push('^');
        rest = after;
    }
    let mut is_first = true;
    while is_first || !rest.starts_with(']') {
        is_first = false;
        let part;
        (part, rest) = match named(rest)? {
            Some(found) => found,
            None => match escape::class(rest)? {
                Some(found) => found,
                None => range(text, rest)?,
            },
        };
        written.push_str(&part);
    }
    written.push(']');
    Ok((written, &rest[1..]))
}

/// Reads a class by the name of POSIX, such as `[:alpha:]`.
fn named(text: &str) -> Result<Option<(String, &str)>, PatternError> {
    let Some(rest) = text.strip_prefix("[:") else { return Ok(None) };
    let Some(end) = rest.find(":]") else { return Ok(None) };
    let (name, rest) = (&rest[..end], &rest[end + 2..]);
    let part = &text[..text.len() - rest.len()];
    if POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        Ok(Some((part.to_owned(), rest)))
    } else {
        Err(PatternError::new("invalid character class range", part))
    }
}

/// Reads a character, or the first and the last one of a range.
fn range<'t>(whole: &str, text: &'t str) -> Result<(String, &'t str), PatternError> {
    let (first, rest) = character(whole, text)?;
    let after = rest.strip_prefix('-').filter(|after| !after.is_empty() && !after.starts_with(']'));
    let Some(after) = after else { return Ok((escape::written(first), rest)) };
    let (last, rest) = character(whole, after)?;
    if last < first {
        let part = &text[..text.len() - rest.len()];
        return Err(PatternError::new("invalid character class range", part));
    }
    Ok((format!("{}-{}", escape::written(first), escape::written(last)), rest))
}

fn character<'t>(whole: &str, text: &'t str) -> Result<(char, &'t str), PatternError> {
    match text.chars().next() {
        None => Err(PatternError::new("missing closing ]", whole)),
        Some('\\') => escape::character(text),
        Some(c) => Ok((c, &text[c.len_utf8()..])),
    }
}
