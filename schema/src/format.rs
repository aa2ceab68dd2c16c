//! The formats of texts that the API server checks.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use homeostat_core::parse_go_duration;
use regex::Regex;

use crate::node::{Scalar, Shape};
use crate::url;

/// Returns true if a schema of this type may have the format.
pub(crate) fn applies(shape: &Shape, format: &str) -> bool {
    match shape {
        Shape::Scalar(Scalar::Int32 | Scalar::Int64) => matches!(format, "int32" | "int64"),
        Shape::Scalar(Scalar::Float) => matches!(format, "float" | "double"),
        Shape::Scalar(Scalar::String) | Shape::Any => is_known(format),
        _ => false,
    }
}

/// Returns true if a text has the format. Texts of an unknown format pass, and passwords.
pub(crate) fn is_valid(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "ipv4" => text.contains('.') && sloppy_address(text).is_some(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_hardware_address(text),
        "uuid" => matches(&UUID, text),
        "uuid3" => matches(&UUID3, text),
        "uuid4" => matches(&UUID4, text),
        "uuid5" => matches(&UUID5, text),
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "hexcolor" => matches(&HEX_COLOR, text),
        "ssn" => text.len() == 11 && matches(&SSN, text),
        "rgbcolor" => matches(&RGB_COLOR, text),
        "isbn" => is_isbn_10(text) || is_isbn_13(text),
        "isbn10" => is_isbn_10(text),
        "isbn13" => is_isbn_13(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => parse_go_duration(text).is_ok() || matches(&DURATION, text),
        "byte" => matches(&BASE64, text) && text.len().is_multiple_of(4),
        "email" => matches(&EMAIL, text),
        "hostname" => is_host_name(text),
        "uri" => url::check(text).is_ok(),
        "k8sshortname" => text.len() <= 63 && matches(&SHORT_NAME, text),
        "k8slongname" => text.len() <= 253 && matches(&LONG_NAME, text),
        _ => true,
    }
}

/// Returns true if Kubernetes knows a format, such as `date-time`, for values of a type. Unknown
/// formats are not checked.
///
/// # Examples
///
/// ```
/// assert!(homeostat_schema::is_known_format("string", "date-time"));
/// assert!(!homeostat_schema::is_known_format("integer", "date-time"));
/// assert!(!homeostat_schema::is_known_format("string", "colour"));
/// ```
pub fn is_known_format(of_type: &str, format: &str) -> bool {
    match of_type {
        "" | "string" => is_known(format),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn is_known(format: &str) -> bool {
    const KNOWN: [&str; 26] = [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "k8sshortname",
        "k8slongname",
    ];
    KNOWN.contains(&format.replace('-', "").as_str())
}

/// Reads an address whose parts may have zeros in front.
fn sloppy_address(text: &str) -> Option<IpAddr> {
    let (before, last) = match text.rfind(':') {
        Some(at) => text.split_at(at + 1),
        None => ("", text),
    };
    if !last.contains('.') {
        return text.parse().ok();
    }
    let plain = |part: &str| {
        let digits = part.trim_start_matches('0');
        if digits.is_empty() && !part.is_empty() { "0".to_owned() } else { digits.to_owned() }
    };
    let parts: Vec<String> = last.split('.').map(plain).collect();
    format!("{before}{}", parts.join(".")).parse().ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match sloppy_address(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    !bits.starts_with('+') && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Checks a date and a time. As upstream, a second `t` and what follows it are not read.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let part = |at: usize, most: &str| time.get(at..at + 2).is_some_and(|part| part <= most);
    is_date(date) && matches(&TIME, time) && part(0, "23") && part(3, "59") && part(6, "59")
}

/// Checks an address of 6, 8 or 20 bytes in pairs or fours of digits.
fn is_hardware_address(text: &str) -> bool {
    let (mark, digits) = match (text.as_bytes().get(2), text.as_bytes().get(4)) {
        (Some(b':'), _) => (':', 2),
        (Some(b'-'), _) => ('-', 2),
        (_, Some(b'.')) => ('.', 4),
        _ => return false,
    };
    let is_part =
        |part: &str| part.len() == digits && part.bytes().all(|digit| digit.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split(mark).collect();
    matches!(parts.len() * digits / 2, 6 | 8 | 20) && parts.into_iter().all(is_part)
}

/// Checks a name of a host by upstream's pattern: a word that may have a hyphen after its first
/// character, or labels and a top-level domain of letters.
fn is_host_name(text: &str) -> bool {
    let is_word = |part: &str| matches(&WORD, part);
    let is_label = |label: &str| {
        let inner = label.trim_start_matches('-').len() == label.len() && !label.ends_with('-');
        inner && !label.is_empty() && is_word(&label.replace('-', "a"))
    };
    let fits = if let Some((labels, last)) = text.rsplit_once('.') {
        let length = last.chars().count();
        labels.split('.').all(is_label) && (2..=63).contains(&length) && matches(&LETTERS, last)
    } else {
        let rest = text.char_indices().nth(1).map_or("", |(at, _)| &text[at..]);
        let first = &text[..text.len() - rest.len()];
        !first.is_empty() && is_word(first) && is_word(rest.strip_prefix('-').unwrap_or(rest))
    };
    fits && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// Returns the digits of a number whose groups hyphens or spaces separate.
fn joined(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| *byte != b'-' && !byte.is_ascii_whitespace()).collect()
}

fn is_isbn_10(text: &str) -> bool {
    let digits = joined(text);
    let Some((last, first)) = digits.split_last().filter(|(_, first)| first.len() == 9) else {
        return false;
    };
    let last = if *last == b'X' { 10 } else { u32::from(last.wrapping_sub(b'0')) };
    let sum: u32 =
        (1..).zip(first).map(|(at, digit)| at * u32::from(digit.wrapping_sub(b'0'))).sum();
    first.iter().all(u8::is_ascii_digit) && last <= 10 && (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn_13(text: &str) -> bool {
    let digits = joined(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted = |(at, digit): (usize, &u8)| u32::from(digit - b'0') * [1, 3][at % 2];
    digits.iter().enumerate().map(weighted).sum::<u32>().is_multiple_of(10)
}

/// Checks the form and the last digit of a number; what is no digit does not count.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let weighted = |(at, digit): (usize, u8)| {
        let digit = u32::from(digit - b'0') * [1, 2][at % 2];
        digit / 10 + digit % 10
    };
    let sum: u32 = digits.bytes().rev().enumerate().map(weighted).sum();
    matches(&CREDIT_CARD, &digits) && sum.is_multiple_of(10)
}

fn matches(pattern: &LazyLock<Regex>, text: &str) -> bool {
    pattern.is_match(text)
}

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern of a format compiles")
}

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    compile("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
});
static UUID3: LazyLock<Regex> = LazyLock::new(|| {
    compile("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
});
static UUID4: LazyLock<Regex> = LazyLock::new(|| {
    compile("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")
});
static UUID5: LazyLock<Regex> = LazyLock::new(|| {
    compile("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$")
});
static HEX_COLOR: LazyLock<Regex> =
    LazyLock::new(|| compile("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static SSN: LazyLock<Regex> = LazyLock::new(|| compile(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"));
/// Of several numbers with units, as upstream reads them, one is enough.
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        "(?i)[0-9]+\\s*((ns|us|µs|ms|s|m|h|hr|d|w|wk)([^A-Za-zµ]|$)|\
         nano|micro|milli|sec|min|hour|day|week)",
    )
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| compile("^[0-9]{2}:[0-9]{2}:[0-9]{2}(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = "\\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\\s*";
    compile(&format!("^rgb\\({part},{part},{part}\\)$"))
});
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        "^(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|\
         3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
/// Letters, digits and symbols of any script.
static WORD: LazyLock<Regex> = LazyLock::new(|| compile(r"^[a-zA-Z0-9\p{S}\p{L}]*$"));
static LETTERS: LazyLock<Regex> = LazyLock::new(|| compile(r"^[a-zA-Z\p{L}]*$"));
static BASE64: LazyLock<Regex> = LazyLock::new(|| compile("^[A-Za-z0-9+/]+={0,2}$"));
static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"^(.*<)?("[^"]*"|[^@\s<>()\[\],;:]+)@[^@\s<>()\[\],;:]+>?$"#));
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| compile("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static LONG_NAME: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_accepts_and_rejects() {
        for (format, good, bad) in [
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fe80::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "00:1b:63:84:45:e6", "00:1b:63:84:45"),
            ("uuid", "a8098c1a-f86e-11da-bd1a-00112444be1e", "a8098c1a"),
            ("date", "2026-02-28", "2026-02-30"),
            ("date-time", "2026-02-28T10:00:00Z", "2026-02-28 10:00"),
            ("duration", "1h30m", "soon"),
            ("byte", "aGVsbG8=", "aGVsbG8"),
            ("email", "a@example.com", "example.com"),
            ("hostname", "a.example.com", "-a"),
            ("uri", "https://example.com/a", "no scheme"),
            ("hexcolor", "#ffaa00", "#ffaa0"),
            ("k8s-short-name", "a-b", "A"),
            ("k8s-long-name", "a.b-c", "a..b"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ] {
            assert!(is_valid(format, good), "{good} is a valid {format}");
            assert!(!is_valid(format, bad), "{bad} is no {format}");
        }
        assert!(is_valid("colour", "anything"));
    }

    #[test]
    fn formats_are_as_wide_as_upstreams() {
        for (format, good, bad) in [
            ("date-time", "2026-02-28t10:00:00.123456789123z", "2026-02-28T10:00:60Z"),
            ("date-time", "2026-02-28T23:59:59+01:00", "2026-02-28T10:00:00+01"),
            ("date-time", "2026-02-28T10:00:00Z", "2026-02-28T10:00:00+0100"),
            ("uri", "http://[::1]:80/", "http://a/%zz"),
            ("duration", "P1D", "1"),
            ("duration", "2 weeks", "two weeks"),
            ("email", "\"a b\"@c.d", "a b@c.d"),
            ("hostname", "a-", "a.b"),
            ("hostname", "ä.de", "a_b"),
            ("hostname", "a-bc", "ab-c"),
            ("hostname", "a.example", "1.2.3.4"),
            ("ipv4", "010.0.00.1", "10.0.0.0256"),
            ("ipv4", "::ffff:10.0.0.1", "::1"),
            ("cidr", "010.0.0.0/08", "10.0.0.0/33"),
            ("mac", "02:00:5e:10:00:00:00:01", "02:00:5e:10:00:00:00"),
            ("mac", "0200.5e10.0000", "02:00-5e:10:00:00"),
            ("rgbcolor", "rgb( 1 ,20, 255)", "rgb(1,2,300)"),
            ("ssn", "111-11-1111", "111111111"),
            ("isbn", "0-321-75104-3", "0-321-75104-4"),
            ("isbn13", "978-0321751041", "0321751043"),
            ("creditcard", "4012 8888 8888 1881", "4012888888881882"),
            ("byte", "YQ==", ""),
        ] {
            assert!(is_valid(format, good), "{good} is a valid {format}");
            assert!(!is_valid(format, bad), "{bad} is no {format}");
        }
    }
}
