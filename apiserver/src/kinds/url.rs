//! URLs, read as Go's `url.Parse` does.

/// The parts of a URL that rules are about. A missing one is empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: String,
    /// The user and the password, if the URL has them.
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) query: String,
    pub(super) fragment: String,
}

/// Reads a URL.
///
/// # Errors
///
/// Returns the detail of Go's error.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, rest) = split_scheme(rest)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        user: None,
        host: String::new(),
        query: query.to_owned(),
        fragment: fragment.to_owned(),
    };
    check_escapes(rest)?;
    check_escapes(fragment)?;
    if !rest.starts_with('/') && scheme.is_empty() {
        let first = rest.split('/').next().unwrap_or_default();
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let Some(rest) = rest.strip_prefix("//") else { return Ok(url) };
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user.to_owned()), host),
        None => (None, authority),
    };
    check_port(host)?;
    url.user = user;
    host.clone_into(&mut url.host);
    Ok(url)
}

/// Splits the scheme off; it is empty if there is none.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(("", text)) };
    let mut bytes = scheme.bytes();
    let Some(first) = bytes.next() else { return Err("missing protocol scheme".to_owned()) };
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if !first.is_ascii_alphabetic() || !bytes.all(is_rest) {
        return Ok(("", text));
    }
    Ok((scheme, rest))
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let escape: String = text[at..].chars().take(3).collect();
        let is_hex = escape.chars().skip(1).all(|digit| digit.is_ascii_hexdigit());
        if escape.len() != 3 || !is_hex {
            return Err(format!("invalid URL escape \"{escape}\""));
        }
    }
    Ok(())
}

fn check_port(host: &str) -> Result<(), String> {
    let after = host.rfind(']').map_or(host, |end| &host[end..]);
    let Some((_, port)) = after.rsplit_once(':') else { return Ok(()) };
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    Err(format!("invalid port \":{port}\" after host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_go() {
        let url = parse("HTTPS://me:secret@[::1]:8443/a?b=c#d").unwrap();
        let expected = Url {
            scheme: "https".to_owned(),
            user: Some("me:secret".to_owned()),
            host: "[::1]:8443".to_owned(),
            query: "b=c".to_owned(),
            fragment: "d".to_owned(),
        };
        assert_eq!(url, expected);
        assert_eq!(parse("a/b").unwrap().host, "");
        assert_eq!(parse("https:///a").unwrap().host, "");
    }

    #[test]
    fn text_that_is_no_url_is_refused() {
        assert_eq!(parse(":a").unwrap_err(), "missing protocol scheme");
        assert_eq!(parse("1:a").unwrap_err(), "first path segment in URL cannot contain colon");
        assert_eq!(parse("https://a/%zz").unwrap_err(), "invalid URL escape \"%zz\"");
        assert_eq!(parse("https://a:b").unwrap_err(), "invalid port \":b\" after host");
        assert!(parse("a\nb").is_err());
    }
}
