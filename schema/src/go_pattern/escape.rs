//! Escapes: characters and classes of characters.

use super::PatternError;

/// Writes a character that stands for itself.
pub(super) fn written(c: char) -> String {
    if c.is_alphanumeric() || c == '_' {
        c.to_string()
    } else {
        format!("\\x{{{:x}}}", u32::from(c))
    }
}

/// Reads `\d`, `\pL`, `\p{Greek}` and their like, if the text begins with one.
pub(super) fn class(text: &str) -> Result<Option<(String, &str)>, PatternError> {
    let Some(rest) = text.strip_prefix('\\') else { return Ok(None) };
    let Some(letter) = rest.chars().next() else { return Ok(None) };
    let rest = &rest[letter.len_utf8()..];
    let class = match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r\x20]",
        'S' => r"[^\t\n\f\r\x20]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        'p' | 'P' => return unicode(text, letter == 'P', rest).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), rest)))
}

/// Reads the name of a class of Unicode.
fn unicode<'t>(
    text: &'t str,
    negated: bool,
    rest: &'t str,
) -> Result<(String, &'t str), PatternError> {
    let wrong = |part: &str| PatternError::new("invalid character class range", part);
    let first = rest.chars().next().ok_or_else(|| wrong(text))?;
    let (name, rest) = if first == '{' {
        let end = rest.find('}').ok_or_else(|| wrong(text))?;
        (&rest[1..end], &rest[end + 1..])
    } else {
        rest.split_at(first.len_utf8())
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let class = format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' });
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' '));
    if !is_plain || regex::Regex::new(&class).is_err() {
        return Err(wrong(&text[..text.len() - rest.len()]));
    }
    Ok((class, rest))
}

/// Reads an escaped character.
pub(super) fn character(text: &str) -> Result<(char, &str), PatternError> {
    let after = &text[1..];
    let Some(c) = after.chars().next() else {
        return Err(PatternError::new("trailing backslash at end of expression", ""));
    };
    let rest = &after[c.len_utf8()..];
    let is_octal = |digit: u8| (b'0'..=b'7').contains(&digit);
    let found = match c {
        '0' => octal(after),
        // One digit would be a reference to a group.
        '1'..='7' if rest.bytes().next().is_some_and(is_octal) => octal(after),
        'x' => hexadecimal(rest),
        'a' => Some(('\u{7}', rest)),
        'f' => Some(('\u{c}', rest)),
        'n' => Some(('\n', rest)),
        'r' => Some(('\r', rest)),
        't' => Some(('\t', rest)),
        'v' => Some(('\u{b}', rest)),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some((c, rest)),
        _ => None,
    };
    found.ok_or_else(|| {
        let end = if c == 'x' { hexadecimal_end(rest) } else { 0 };
        let read = 1 + c.len_utf8() + end;
        PatternError::new("invalid escape sequence", &text[..read])
    })
}

/// Reads up to three octal digits.
fn octal(text: &str) -> Option<(char, &str)> {
    let digits = text.bytes().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
    let (digits, rest) = text.split_at(digits);
    let code = u32::from_str_radix(digits, 8).ok()?;
    Some((char::from_u32(code)?, rest))
}

/// Reads two hexadecimal digits, or any number of them in braces.
fn hexadecimal(text: &str) -> Option<(char, &str)> {
    let (digits, rest) = match text.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => text.split_at_checked(2)?,
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let code = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).ok()? };
    Some((char::from_u32(code)?, rest))
}

/// Returns the length of what is read until the digits after `\x` are found to be wrong.
fn hexadecimal_end(text: &str) -> usize {
    let Some(inner) = text.strip_prefix('{') else {
        return text.chars().take(2).map(char::len_utf8).sum();
    };
    let mut code: u32 = 0;
    let mut end = 1;
    for c in inner.chars() {
        end += c.len_utf8();
        let Some(digit) = c.to_digit(16) else { break };
        code = code.saturating_mul(16).saturating_add(digit);
        if code > u32::from(char::MAX) {
            break;
        }
    }
    end
}
