//! URLs, which are read as Go's package `net/url` reads them.

use std::fmt::Write;
use std::net::IpAddr;

use homeostat_core::go_quote;

use crate::address;

/// Characters that a path has without an escape, besides letters and digits.
const OF_PATH: &str = "-._~$&+,/:;=@";
/// Characters that a path may have without an escape, although it needs none of them so.
const ALSO_OF_PATH: &str = "!'()*[]%";
const OF_HOST: &str = "-._~!$&'()*+,;=:[]<>\"";
const OF_USER: &str = "-._:~!$&'()*+,;=%@";

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    /// The name and the port.
    host: String,
    /// The path with its escapes.
    path: String,
    query: String,
}

/// Checks a text as `ParseRequestURI` does: an absolute URL or an absolute path.
///
/// # Errors
///
/// Returns the text of the error.
pub(crate) fn check(text: &str) -> Result<(), String> {
    parse(text, true).map(|_| ()).map_err(|problem| format!("parse {}: {problem}", go_quote(text)))
}

fn parse(text: &str, is_request: bool) -> Result<Url, String> {
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    let (scheme, rest) = scheme_of(text)?;
    let scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url { scheme, host: String::new(), path: String::new(), query: query.to_owned() };
    if text == "*" {
        text.clone_into(&mut url.path);
        return Ok(url);
    }
    if !rest.starts_with('/') {
        // An opaque address, such as `mailto:a`, has neither a host nor a path.
        return if url.scheme.is_empty() {
            Err("invalid URI for request".to_owned())
        } else {
            Ok(url)
        };
    }
    let has_host = !url.scheme.is_empty() || !is_request && !rest.starts_with("///");
    let path = match rest.strip_prefix("//").filter(|_| has_host) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            url.host = host_of(&url.scheme, authority)?;
            path
        }
        None => rest,
    };
    url.path = escaped_path(path)?;
    Ok(url)
}

fn scheme_of(text: &str) -> Result<(&str, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match end.filter(|end| text[*end..].starts_with(':')) {
        Some(0) => Err("missing protocol scheme".to_owned()),
        Some(end) if begins => Ok((&text[..end], &text[end + 1..])),
        _ => Ok(("", text)),
    }
}

/// Returns the host and the port, without the user.
fn host_of(scheme: &str, authority: &str) -> Result<String, String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = if host.contains('[') { literal(host)? } else { name(scheme, host)? };
    if let Some(user) = user {
        if !user.chars().all(|c| c.is_ascii_alphanumeric() || OF_USER.contains(c)) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        unescape(user, |_| None)?;
    }
    Ok(host)
}

/// Reads an address in brackets, with its port.
fn literal(host: &str) -> Result<String, String> {
    let Some(inner) = host.strip_prefix('[').filter(|inner| !inner.contains('[')) else {
        return Err("invalid IP-literal".to_owned());
    };
    let (address, port) = inner.rsplit_once(']').ok_or("missing ']' in host")?;
    check_port(port)?;
    let address = match address.find("%25") {
        Some(at) => unescape_host(&address[..at])? + &unescape(&address[at..], wrong_of_zone)?,
        None => unescape_host(address)?,
    };
    match address::parse(&address) {
        Err(problem) => Err(format!("invalid host: {problem}")),
        Ok((IpAddr::V4(_), _)) => Err("invalid IP-literal".to_owned()),
        Ok(_) => Ok(format!("[{address}]{port}")),
    }
}

fn name(scheme: &str, host: &str) -> Result<String, String> {
    let is_strict = matches!(scheme, "http" | "https");
    let colon = if is_strict { host.find(':') } else { host.rfind(':') };
    check_port(colon.map_or("", |at| &host[at..]))?;
    unescape_host(host)
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':');
    if port.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", go_quote(port)))
}

fn unescape_host(text: &str) -> Result<String, String> {
    let is_known = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || OF_HOST.contains(c);
    if let Some(c) = text.chars().find(|c| *c != '%' && !is_known(*c)) {
        // An escape before it is found first.
        let before = text.split(c).next().unwrap_or_default();
        unescape(before, wrong_of_host)?;
        return Err(format!("invalid character {} in host name", go_quote(&c.to_string())));
    }
    unescape(text, wrong_of_host)
}

/// Of the characters of ASCII, a host escapes `%` alone.
fn wrong_of_host(byte: u8) -> Option<()> {
    (byte < 0x80 && byte != b'%').then_some(())
}

fn wrong_of_zone(byte: u8) -> Option<()> {
    let c = char::from(byte);
    let is_known = c.is_ascii_alphanumeric() || OF_HOST.contains(c) || matches!(c, '%' | ' ');
    (!is_known).then_some(())
}

/// Replaces the escapes of a text. `wrong` returns a value for a byte that must not be escaped.
fn unescape(text: &str, wrong: impl Fn(u8) -> Option<()>) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let byte = digit(0).zip(digit(1)).map(|(high, low)| high * 16 + low);
        let byte =
            byte.and_then(|byte| u8::try_from(byte).ok()).filter(|byte| wrong(*byte).is_none());
        let Some(byte) = byte else {
            let shown = String::from_utf8_lossy(&after[..after.len().min(2)]);
            return Err(format!("invalid URL escape {}", go_quote(&format!("%{shown}"))));
        };
        bytes.push(byte);
        rest = &after[2..];
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a path as it is if it is a valid escaped one, else with new escapes.
fn escaped_path(path: &str) -> Result<String, String> {
    let unescaped = unescape(path, |_| None)?;
    let is_of = |c: char, known: &str| c.is_ascii_alphanumeric() || known.contains(c);
    if path.chars().all(|c| is_of(c, OF_PATH) || ALSO_OF_PATH.contains(c)) {
        return Ok(path.to_owned());
    }
    let mut escaped = String::new();
    for byte in unescaped.bytes() {
        match char::from(byte) {
            c if byte.is_ascii() && is_of(c, OF_PATH) => escaped.push(c),
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    Ok(escaped)
}

// === impl Url ===

impl Url {
    /// Reads an absolute URL or an absolute path, with a fragment.
    ///
    /// # Errors
    ///
    /// Returns the text of Go's error.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        check(text)?;
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let failed = |part: &str, problem| format!("parse {}: {problem}", go_quote(part));
        let url = parse(before, false).map_err(|problem| failed(before, problem))?;
        unescape(fragment, |_| None).map_err(|problem| failed(text, problem))?;
        Ok(url)
    }

    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the name or address, and the port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the name or address, without the brackets of one of IPv6.
    pub(crate) fn host_name(&self) -> &str {
        let host = self.split().map_or(self.host.as_str(), |(host, _)| host);
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.unwrap_or(host)
    }

    /// Returns the port; empty if there is none.
    pub(crate) fn port(&self) -> &str {
        self.split().map_or("", |(_, port)| port)
    }

    /// Returns the path with its escapes.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn split(&self) -> Option<(&str, &str)> {
        let split = self.host.rsplit_once(':');
        split.filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns the values of the query by their keys. Parts that Go cannot read are left out.
    pub(crate) fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        let is_read = |pair: &&str| !pair.is_empty() && !pair.contains(';');
        for pair in self.query.split('&').filter(is_read) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = |text: &str| unescape(&text.replace('+', " "), |_| None);
            let (Ok(key), Ok(value)) = (read(key), read(value)) else { continue };
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => found.push((key, vec![value])),
            }
        }
        found
    }
}
