//! Semantic versions.

use homeostat_core::go_quote;

/// A semantic version, without its build metadata, which has no order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Semver {
    pub(super) numbers: [u64; 3],
    stage: Stage,
}

/// A release comes after all its pre-releases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before(Vec<Identifier>),
    Release,
}

/// A part of a pre-release. Numbers come before names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Name(String),
}

type Read<T> = Result<T, String>;

// === impl Semver ===

impl Semver {
    /// Reads a version; `lenient` also one with a `v`, leading zeros, or missing numbers.
    ///
    /// # Errors
    ///
    /// Returns the text of the error.
    pub(super) fn read(text: &str, lenient: bool) -> Read<Self> {
        if lenient { normalized(text).and_then(|text| parse(&text)) } else { parse(text) }
    }
}

fn parse(text: &str) -> Read<Semver> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (major, minor) = (read_number(major, "Major")?, read_number(minor, "Minor")?);
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, before) = match rest.split_once('-') {
        Some((patch, before)) => (patch, Some(before)),
        None => (rest, None),
    };
    let patch = read_number(patch, "Patch")?;
    let stage = match before {
        None => Stage::Release,
        Some(before) => Stage::Before(before.split('.').map(identifier).collect::<Read<_>>()?),
    };
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_name(part) {
            let shown = go_quote(part);
            return Err(format!("Invalid character(s) found in build meta data {shown}"));
        }
    }
    Ok(Semver { numbers: [major, minor, patch], stage })
}

fn read_number(text: &str, name: &str) -> Read<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let name = name.to_ascii_lowercase();
        return Err(format!("Invalid character(s) found in {name} number {}", go_quote(text)));
    }
    if has_leading_zero(text) {
        return Err(format!("{name} number must not contain leading zeroes {}", go_quote(text)));
    }
    parse_number(text)
}

fn parse_number(text: &str) -> Read<u64> {
    text.parse().map_err(|_| {
        let problem = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {problem}", go_quote(text))
    })
}

fn identifier(text: &str) -> Read<Identifier> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if has_leading_zero(text) {
            let shown = go_quote(text);
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {shown}"
            ));
        }
        return parse_number(text).map(Identifier::Number);
    }
    if is_name(text) {
        return Ok(Identifier::Name(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", go_quote(text)))
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Removes a `v` and leading zeros, and adds the numbers that are missing.
fn normalized(text: &str) -> Read<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|part| part.contains(['+', '-'])) {
            let text = "short version cannot contain PreRelease/Build meta data";
            return Err(text.to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    let trimmed = if part.len() > 1 { part.trim_start_matches('0') } else { part };
    let needs_zero = part.len() > 1 && !trimmed.starts_with(|c: char| c.is_ascii_digit());
    if needs_zero { format!("0{trimmed}") } else { trimmed.to_owned() }
}
