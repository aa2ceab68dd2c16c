//! The formats of texts that the API server checks.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::Regex;

use crate::node::Scalar;
use crate::node::Shape;

/// Returns whether a schema of this type may have the format.
pub(crate) fn applies(shape: &Shape, format: &str) -> bool {
    match shape {
        Shape::Scalar(Scalar::Int32 | Scalar::Int64) => matches!(format, "int32" | "int64"),
        Shape::Scalar(Scalar::Float) => matches!(format, "float" | "double"),
        Shape::Scalar(Scalar::String) | Shape::Any => is_known(format),
        _ => false,
    }
}

/// Returns whether a text has the format. Texts of an unknown format pass, and those of `password`,
/// `isbn`, `isbn10`, `isbn13`, `creditcard` and `rgbcolor`, which are not checked.
pub(crate) fn is_valid(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => matches(&MAC, text),
        "uuid" => matches(&UUID, text),
        "uuid3" => matches(&UUID3, text),
        "uuid4" => matches(&UUID4, text),
        "uuid5" => matches(&UUID5, text),
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "hexcolor" => matches(&HEX_COLOR, text),
        "ssn" => matches(&SSN, text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "datetime" => text.contains(['T', 't']) && text.parse::<jiff::Timestamp>().is_ok(),
        "duration" => matches(&DURATION, text),
        "byte" => matches(&BASE64, text) && text.len().is_multiple_of(4),
        "email" => matches(&EMAIL, text),
        "hostname" => text.len() <= 255 && matches(&HOSTNAME, text),
        "uri" => matches(&URI, text),
        "k8sshortname" => text.len() <= 63 && matches(&SHORT_NAME, text),
        "k8slongname" => text.len() <= 253 && matches(&LONG_NAME, text),
        _ => true,
    }
}

/// Returns whether Kubernetes knows a format, such as `date-time`. Unknown formats are not checked.
///
/// # Examples
///
/// ```
/// assert!(homeostat_schema::is_known_format("date-time"));
/// assert!(!homeostat_schema::is_known_format("colour"));
/// ```
pub fn is_known_format(format: &str) -> bool {
    matches!(format, "int32" | "int64" | "float" | "double") || is_known(format)
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

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    !bits.starts_with('+') && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn matches(pattern: &LazyLock<Regex>, text: &str) -> bool {
    pattern.is_match(text)
}

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern of a format compiles")
}

static MAC: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        "^(?i)([0-9a-f]{2}([:-])[0-9a-f]{2}([:-][0-9a-f]{2}){4}|[0-9a-f]{4}(\\.[0-9a-f]{4}){2})$",
    )
});
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
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        "^([-+]?0|[-+]?(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|\
         [0-9]+ *(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|\
         s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?))$",
    )
});
static BASE64: LazyLock<Regex> = LazyLock::new(|| compile("^[A-Za-z0-9+/]*={0,2}$"));
static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^(.*<)?[^@\s<>()\[\],;:]+@[^@\s<>()\[\],;:]+>?$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^([a-zA-Z0-9_]([a-zA-Z0-9_-]{0,62}[a-zA-Z0-9_])?)(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,62}[a-zA-Z0-9_])?)*\.?$",
    )
});
static URI: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^(/|[a-zA-Z][a-zA-Z0-9+.-]*:)[^\s\x00-\x1f]*$"));
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
}
