//! The headers of a reply: which are compared, and the masks of their values.

use http::HeaderMap;
use jiff::fmt::strtime;

/// The headers that are not compared, in lower case.
const SKIPPED: &[&str] = &[
    // They belong to the connection.
    "connection",
    "content-length",
    "date",
    "transfer-encoding",
    // The embedded server sends documents whole; a client may ask for a part all the same.
    "accept-ranges",
];

/// The values that a file leaves out. It says `-` for a header of this list that a reply does not
/// have.
pub(crate) const USUAL: &[(&str, &str)] = &[
    ("Audit-Id", "<uid>"),
    ("Cache-Control", "no-cache, private"),
    ("X-Kubernetes-Pf-Flowschema-Uid", "<uid>"),
    ("X-Kubernetes-Pf-Prioritylevel-Uid", "<uid>"),
];

/// The value of a header in a file that the reply does not have.
pub(crate) const MISSING: &str = "-";

/// Returns the headers that are compared, in the order of their names.
pub(crate) fn compared(headers: &HeaderMap) -> Vec<(String, String)> {
    let compared = headers.iter().filter(|(name, _)| !SKIPPED.contains(&name.as_str()));
    // Go writes non-ASCII header values as UTF-8.
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut compared: Vec<_> =
        compared.map(|(name, value)| (canonical(name.as_str()), text(value))).collect();
    sort(&mut compared);
    compared
}

/// Sorts headers by their names. Values of the same name stay in their order.
pub(crate) fn sort(headers: &mut [(String, String)]) {
    headers.sort_by(|(a, _), (b, _)| a.cmp(b));
}

/// Returns the name as Go writes it: `Content-Type`.
fn canonical(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

/// Masks the value of a header that the server chose, if it has the shape of its kind. An audit id
/// in `sent`, the text of the client's requests, is the client's.
pub(crate) fn mask(name: &str, value: &str, is_uid: bool, sent: &str) -> String {
    let masked = match name {
        "Audit-Id" if is_uid && !sent.contains(value) => "<uid>",
        // `tests/flow_control.rs` compares whose uids they are.
        "X-Kubernetes-Pf-Flowschema-Uid" | "X-Kubernetes-Pf-Prioritylevel-Uid" if is_uid => "<uid>",
        "Etag" if is_etag(value) => "<etag>",
        "Expires" | "Last-Modified" if is_time(value) => "<time>",
        "Location" => {
            let (address, hash) = value.split_once("?hash=").unwrap_or((value, ""));
            return if is_hash(hash) { format!("{address}?hash=<hash>") } else { value.to_owned() };
        }
        _ => value,
    };
    masked.to_owned()
}

/// Returns true if a value is a strong tag, whose text is a hash.
fn is_etag(value: &str) -> bool {
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    quoted.is_some_and(is_hash)
}

fn is_hash(text: &str) -> bool {
    text.len() >= 16
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte))
}

/// Returns true if a value is a time as HTTP writes it.
fn is_time(value: &str) -> bool {
    let formats = ["%a, %d %b %Y %H:%M:%S GMT", "%a, %d %b %Y %H:%M:%S UTC"];
    formats.iter().any(|format| strtime::parse(format, value).is_ok())
}
