//! The texts of times that Go reads (`time.Parse`), and its errors for the others.

use std::fmt::Write as _;

/// A layout of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `time.RFC3339`
    Seconds,
    /// `metav1.RFC3339Micro`
    Micros,
}

/// The element of a layout at which a text is wrong.
enum Wrong<'a> {
    /// The rest of the text is no such element.
    Element(&'a str, &'static str),
    /// The element is too large.
    Range(&'static str),
}

type Parsed<'a, T> = Result<(T, &'a str), Wrong<'a>>;

/// Returns Go's error for a text that is no time of a layout.
pub(super) fn problem(text: &str, layout: Layout) -> Option<String> {
    let rest = match parse(text, layout) {
        Ok(rest) => rest,
        Err(Wrong::Range(what)) => {
            return Some(format!("parsing time {}: {what} out of range", quote(text)));
        }
        Err(Wrong::Element(rest, element)) => {
            let [text, rest] = [text, rest].map(quote);
            let layout = layout.text();
            return Some(format!(
                "parsing time {text} as \"{layout}\": cannot parse {rest} as \"{element}\""
            ));
        }
    };
    (!rest.is_empty()).then(|| {
        let [text, shown] = [text, rest].map(quote);
        format!("parsing time {text}: extra text: {shown}")
    })
}

/// Quotes a text as the package `time` does: by bytes, apart from ASCII.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            other => _ = write!(quoted, "\\x{other:02x}"),
        }
    }
    quoted + "\""
}

/// Reads a time; returns the text after it.
fn parse(text: &str, layout: Layout) -> Result<&str, Wrong<'_>> {
    let (year, rest) = digits(text, 4, "2006")?;
    let (month, rest) = digits(literal(rest, "-")?, 2, "01")?;
    in_range(1, month, 12, "month")?;
    let (day, rest) = digits(literal(rest, "-")?, 2, "02")?;
    let (hour, rest) = one_or_two_digits(literal(rest, "T")?, "15")?;
    in_range(0, hour, 23, "hour")?;
    let (minute, rest) = digits(literal(rest, ":")?, 2, "04")?;
    in_range(0, minute, 59, "minute")?;
    let (second, rest) = digits(literal(rest, ":")?, 2, "05")?;
    in_range(0, second, 59, "second")?;
    let rest = fraction(rest, layout)?;
    let rest = zone(rest)?;
    in_range(1, day, days(year, month), "day")?;
    Ok(rest)
}

fn literal<'a>(text: &'a str, prefix: &'static str) -> Result<&'a str, Wrong<'a>> {
    text.strip_prefix(prefix).ok_or(Wrong::Element(text, prefix))
}

/// Reads a number of `count` digits.
fn digits<'a>(text: &'a str, count: usize, element: &'static str) -> Parsed<'a, u32> {
    let number = text.get(..count).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(|number| number.parse().ok());
    Ok((number.ok_or(Wrong::Element(text, element))?, &text[count..]))
}

fn one_or_two_digits<'a>(text: &'a str, element: &'static str) -> Parsed<'a, u32> {
    digits(text, 2, element).or_else(|_| digits(text, 1, element))
}

fn in_range(least: u32, number: u32, most: u32, what: &'static str) -> Result<(), Wrong<'static>> {
    if (least..=most).contains(&number) { Ok(()) } else { Err(Wrong::Range(what)) }
}

/// Reads the fraction of a second, which one layout requires.
fn fraction(text: &str, layout: Layout) -> Result<&str, Wrong<'_>> {
    const MICROS: &str = ".000000";
    let after = text.strip_prefix(['.', ',']);
    if layout == Layout::Micros {
        let after = after.ok_or(Wrong::Element(text, MICROS))?;
        let (_, rest) = digits(after, 6, MICROS).map_err(|_| Wrong::Element(text, MICROS))?;
        return Ok(rest);
    }
    let rest = after.map(|after| after.trim_start_matches(|c: char| c.is_ascii_digit()));
    Ok(rest.filter(|rest| rest.len() + 1 < text.len()).unwrap_or(text))
}

/// Reads the offset from UTC.
fn zone(text: &str) -> Result<&str, Wrong<'_>> {
    const ZONE: &str = "Z07:00";
    if let Some(rest) = text.strip_prefix('Z') {
        return Ok(rest);
    }
    let wrong = || Wrong::Element(text, ZONE);
    let signed = text.strip_prefix(['+', '-']).ok_or_else(wrong)?;
    let (hours, rest) = digits(signed, 2, ZONE).map_err(|_| wrong())?;
    let rest = literal(rest, ":").map_err(|_| wrong())?;
    let (minutes, rest) = digits(rest, 2, ZONE).map_err(|_| wrong())?;
    in_range(0, hours, 24, "time zone offset hour")?;
    in_range(0, minutes, 60, "time zone offset minute")?;
    Ok(rest)
}

fn days(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// === impl Layout ===

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_each_layout_is_a_time() {
        let seconds = [
            "2024-02-29T00:00:00Z",
            "2024-01-01T1:00:00+02:00",
            "2024-01-01T00:00:00.5Z",
            "0001-01-01T00:00:00,123456789-24:60",
        ];
        for text in seconds {
            assert_eq!(problem(text, Layout::Seconds), None, "{text}");
        }
        assert_eq!(problem("2024-01-01T00:00:00.000001Z", Layout::Micros), None);
    }

    #[test]
    fn error_names_the_first_wrong_element() {
        let cases = [
            ("", "", "2006"),
            ("2024-01-01", "", "T"),
            ("2024-01-01t00:00:00z", "t00:00:00z", "T"),
            ("2024-1-01T00:00:00Z", "1-01T00:00:00Z", "01"),
            ("2024-01-01T00:00:00.Z", ".Z", "Z07:00"),
            ("2024-01-01T00:00:00+0200", "+0200", "Z07:00"),
        ];
        for (text, rest, element) in cases {
            let expected = format!(
                "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{rest}\" \
                 as \"{element}\""
            );
            assert_eq!(problem(text, Layout::Seconds), Some(expected), "{text}");
        }
        let micros = problem("2024-01-01T00:00:00Z", Layout::Micros).unwrap();
        assert!(micros.ends_with("cannot parse \"Z\" as \".000000\""), "{micros}");
    }

    #[test]
    fn error_names_what_is_out_of_range() {
        let cases = [
            ("2024-13-01T00:00:00Z", "month out of range"),
            ("2023-02-29T00:00:00Z", "day out of range"),
            ("2024-01-01T24:00:00Z", "hour out of range"),
            ("2024-01-01T00:00:00Zx", "extra text: \"x\""),
        ];
        for (text, detail) in cases {
            let expected = format!("parsing time \"{text}\": {detail}");
            assert_eq!(problem(text, Layout::Seconds), Some(expected));
        }
    }
}
