//! The text function `format`, and the check of its clauses when the expression is compiled.

use homeostat_core::go_quote;

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::steps::Steps;
use crate::cel::time;
use crate::cel::types::Type;
use crate::cel::value::Value;

/// The digits after the point, unless a clause states another number.
const DIGITS: usize = 6;
/// The largest number of digits that a clause may state. Upstream has no limit.
const MAX_DIGITS: usize = 10_000;

/// A part of a text with clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cel) enum Piece<'t> {
    Text(&'t str),
    Clause(Clause),
}

/// The form of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cel) enum Clause {
    Any,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// Reads a text with clauses for `count` arguments.
///
/// # Errors
///
/// Returns upstream's text for the first clause that cannot be read or has no argument.
pub(in crate::cel) fn pieces(
    text: &str,
    count: usize,
) -> std::result::Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once('%') {
        pieces.extend((!before.is_empty()).then_some(Piece::Text(before)));
        if let Some(after) = after.strip_prefix('%') {
            pieces.push(Piece::Text("%"));
            rest = after;
            continue;
        }
        if after.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        if used >= count {
            return Err(format!("index {used} out of range"));
        }
        let (clause, after) = clause(after)
            .map_err(|problem| format!("could not parse formatting clause: {problem}"))?;
        pieces.push(Piece::Clause(clause));
        used += 1;
        rest = after;
    }
    pieces.extend((!rest.is_empty()).then_some(Piece::Text(rest)));
    Ok(pieces)
}

fn clause(text: &str) -> std::result::Result<(Clause, &str), String> {
    let (digits, rest) = match text.strip_prefix('.') {
        None => (DIGITS, text),
        Some(rest) => precision(rest)
            .map_err(|problem| format!("error while parsing precision: {problem}"))?,
    };
    let letter = rest.chars().next().unwrap_or_default();
    let clause = match letter {
        's' => Clause::Any,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(digits),
        'e' => Clause::Scientific(digits),
        'b' => Clause::Binary,
        'x' | 'X' => Clause::Hex { upper: letter == 'X' },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, &rest[letter.len_utf8()..]))
}

fn precision(text: &str) -> std::result::Result<(usize, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let end = end.ok_or("could not find end of precision specifier")?;
    let (digits, rest) = text.split_at(end);
    let stated: usize = digits.parse().map_err(|_| {
        let problem = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
        let shown = go_quote(digits);
        format!(
            "error while converting precision to integer: strconv.Atoi: parsing {shown}: {problem}"
        )
    })?;
    if stated > MAX_DIGITS {
        let text = format!("precision {stated} exceeds maximum allowed precision {MAX_DIGITS}");
        return Err(text);
    }
    Ok((stated, rest))
}

pub(super) fn call<'a>(steps: &Steps, name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    match (name, arguments) {
        ("format", [Value::String(text), list]) => Some(format_text(steps, text, &list.items()?)),
        _ => None,
    }
}

fn format_text<'a>(steps: &Steps, text: &str, list: &[Value<'a>]) -> Result<'a> {
    let mut written = String::new();
    let mut arguments = list.iter();
    for piece in pieces(text, list.len()).map_err(EvalError::new)? {
        let part = match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Clause(clause) => match arguments.next() {
                Some(argument) => clause.write(steps, argument)?,
                None => break,
            },
        };
        steps.spend(part.len() / 10 + 1)?;
        written.push_str(&part);
    }
    Ok(Value::text(written))
}

// === impl Clause ===

impl Clause {
    /// Returns true if values of a type fit the clause.
    pub(in crate::cel) fn takes(self, kind: &Type) -> bool {
        let is_number = matches!(kind, Type::Int | Type::Uint);
        *kind == Type::Dyn
            || match self {
                Self::Any => !matches!(kind, Type::Object(_) | Type::Opaque(_) | Type::Optional(_)),
                Self::Decimal | Self::Octal => is_number,
                Self::Fixed(_) | Self::Scientific(_) => {
                    matches!(kind, Type::Double | Type::String)
                }
                Self::Binary => is_number || *kind == Type::Bool,
                Self::Hex { .. } => is_number || matches!(kind, Type::String | Type::Bytes),
            }
    }

    /// Returns the message for an argument of another type.
    pub(in crate::cel) fn mismatch(self, found: &str) -> String {
        let wanted = match self {
            Self::Any => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("error during formatting: {wanted}, was given {found}")
    }

    fn write(self, steps: &Steps, value: &Value<'_>) -> std::result::Result<String, EvalError> {
        let special = |text: &str| matches!(text, "NaN" | "Infinity" | "-Infinity");
        Ok(match (self, value) {
            (Self::Any, value) => return show(steps, value, false),
            (Self::Decimal, Value::Int(number)) => number.to_string(),
            (Self::Decimal, Value::Uint(number)) => number.to_string(),
            (Self::Fixed(digits), Value::Double(number)) => fixed(*number, digits),
            (Self::Scientific(digits), Value::Double(number)) => scientific(*number, digits),
            (Self::Fixed(_) | Self::Scientific(_), Value::String(text)) if special(text) => {
                text.replace("Infinity", "∞")
            }
            (Self::Binary, Value::Bool(value)) => u8::from(*value).to_string(),
            (Self::Hex { upper }, Value::String(text)) => hex(text.as_bytes(), upper),
            (Self::Hex { upper }, Value::Bytes(bytes)) => hex(bytes, upper),
            (_, Value::Int(number)) => {
                let sign = if *number < 0 { "-" } else { "" };
                match self.radix(number.unsigned_abs()) {
                    Some(digits) => format!("{sign}{digits}"),
                    None => return Err(self.failed(value)),
                }
            }
            (_, Value::Uint(number)) => {
                return self.radix(*number).ok_or_else(|| self.failed(value));
            }
            _ => return Err(self.failed(value)),
        })
    }

    fn radix(self, number: u64) -> Option<String> {
        Some(match self {
            Self::Binary => format!("{number:b}"),
            Self::Octal => format!("{number:o}"),
            Self::Hex { upper: false } => format!("{number:x}"),
            Self::Hex { upper: true } => format!("{number:X}"),
            _ => return None,
        })
    }

    fn failed(self, value: &Value<'_>) -> EvalError {
        EvalError::new(self.mismatch(value.type_name()))
    }
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let pair = |byte: &u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
    bytes.iter().map(pair).collect()
}

/// Writes a number as Go does for American English: `1,234.50`.
fn fixed(number: f64, digits: usize) -> String {
    let written = format!("{:.digits$}", number.abs());
    let Some(whole) = written.split('.').next().filter(|_| number.is_finite()) else {
        return special(number);
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    format!("{sign}{grouped}{}", &written[whole.len()..])
}

/// Writes a number as Go does for American English: `1.234500×10⁰³`. As upstream, the precision of
/// the clause is the width of the text.
fn scientific(number: f64, width: usize) -> String {
    // Upstream drops the sign of zero.
    let written = format!("{:.DIGITS$e}", if number == 0.0 { 0.0 } else { number });
    let Some((base, exponent)) = written.split_once('e').filter(|_| number.is_finite()) else {
        return special(number);
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("⁻", exponent),
        None => ("", exponent),
    };
    let raised = |digit: char| match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    let exponent: String = format!("{exponent:0>2}").chars().map(raised).collect();
    format!("{:>width$}", format!("{base}×10{sign}{exponent}"))
}

fn special(number: f64) -> String {
    let text = if number.is_nan() { "NaN" } else { "∞" };
    if number == f64::NEG_INFINITY { format!("-{text}") } else { text.to_owned() }
}

/// Writes any value. Inside of a list or a map, texts are quoted and times are calls.
fn show(steps: &Steps, value: &Value<'_>, inside: bool) -> std::result::Result<String, EvalError> {
    steps.spend(value.weight() + 1)?;
    if let Some(items) = value.items() {
        let texts: std::result::Result<Vec<_>, _> =
            items.iter().map(|item| show(steps, item, true)).collect();
        return Ok(format!("[{}]", texts?.join(", ")));
    }
    if let Some(entries) = value.entries() {
        let mut pairs = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                let found = key.type_name();
                let text = format!("no formatting function for map key of type {found}");
                return Err(EvalError::new(format!("error during formatting: {text}")));
            }
            pairs.push((show(steps, &key, true)?, show(steps, &value, true)?));
        }
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let pairs: Vec<String> =
            pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
        return Ok(format!("{{{}}}", pairs.join(", ")));
    }
    Ok(match value {
        Value::String(text) if inside => go_quote(text),
        Value::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| {
                EvalError::new(
                    "error during formatting: could not convert argument \"invalid UTF-8 in bytes, \
                     cannot convert to string\" to string",
                )
            })?;
            if inside { format!("b{}", go_quote(text)) } else { text.to_owned() }
        }
        Value::Double(number) if inside => format!("{number:.DIGITS$}"),
        Value::Timestamp(time) if inside => format!("timestamp({})", go_quote(&time.to_string())),
        Value::Duration(nanos) if inside => {
            format!("duration({})", go_quote(&time::show_duration(*nanos)))
        }
        Value::Null => "null".to_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::Double(number) => super::convert::show_double(*number),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanos) => time::show_duration(*nanos),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_) => value.show(),
        _ => return Err(Clause::Any.failed(value)),
    })
}
