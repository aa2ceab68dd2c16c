//! Regular expressions in Go's syntax, which schemas and CEL use.
//!
//! The crate `regex` reads a similar syntax: it takes more (`\u0061`, `a++`, sets of classes), does
//! not take `\Q…\E` and `\141`, and gives `\d`, `\w`, `\s` and `\b` the characters of Unicode where
//! Go has those of ASCII. So an expression is read by Go's rules, and written in the syntax of the
//! crate.

mod class;
mod escape;

use std::fmt;

use regex::{Regex, RegexBuilder};

/// The largest count of a repetition, and of the repetitions inside of it.
const MAX_REPEAT: u64 = 1000;
/// The deepest nesting of groups that the crate compiles.
const MAX_DEPTH: usize = 200;

/// The reason why a text is no expression, in Go's words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatternError {
    problem: &'static str,
    part: String,
}

/// Letters of flags, in the order of `(?imsU)`.
const FLAGS: [char; 4] = ['i', 'm', 's', 'U'];

type Flags = [bool; 4];

/// A group that is open.
#[derive(Debug)]
struct Group {
    flags: Flags,
    written_flags: Flags,
    /// The largest number of copies of a part inside.
    copies: u64,
}

/// The bounds of a repetition.
#[derive(Debug)]
struct Counts<'t> {
    least: u64,
    most: Option<u64>,
    /// The text after the bounds.
    after: &'t str,
}

/// Reads an expression from left to right.
#[derive(Debug)]
struct Reader<'t> {
    whole: &'t str,
    rest: &'t str,
    written: String,
    flags: Flags,
    /// The flags that the written text is read with.
    written_flags: Flags,
    groups: Vec<Group>,
    /// The number of copies of the part that a repetition would repeat; `None` without such a part.
    last: Option<u64>,
    /// The largest number of copies in the open group.
    copies: u64,
    /// The text from the repetition before, if it ends here.
    repeated: Option<&'t str>,
}

/// Compiles an expression of at most 1 MiB of compiled size.
///
/// # Errors
///
/// Returns Go's reason if Go cannot read the expression, or the one for a large expression.
pub(crate) fn compile(text: &str) -> Result<Regex, PatternError> {
    let translated = translate(text)?;
    let compiled = RegexBuilder::new(&translated).size_limit(1 << 20).build();
    compiled.map_err(|_| PatternError::new("expression too large", text))
}

/// Writes an expression in the syntax of the crate `regex`.
///
/// # Errors
///
/// Returns Go's reason if Go cannot read the expression.
fn translate(text: &str) -> Result<String, PatternError> {
    let mut reader = Reader {
        whole: text,
        rest: text,
        written: String::with_capacity(text.len()),
        flags: Flags::default(),
        written_flags: Flags::default(),
        groups: Vec::new(),
        last: None,
        copies: 0,
        repeated: None,
    };
    while let Some(first) = reader.rest.chars().next() {
        let repeated = reader.repeated.take();
        reader.step(first, repeated)?;
    }
    if reader.groups.is_empty() {
        Ok(reader.written)
    } else {
        Err(PatternError::new("missing closing )", text))
    }
}

// === impl PatternError ===

impl PatternError {
    fn new(problem: &'static str, part: &str) -> Self {
        Self { problem, part: part.to_owned() }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.problem, self.part)
    }
}

// === impl Reader ===

impl<'t> Reader<'t> {
    fn step(&mut self, first: char, repeated: Option<&'t str>) -> Result<(), PatternError> {
        match first {
            '(' if self.rest.starts_with("(?") => self.flags_or_group()?,
            '(' => {
                self.skip(1);
                self.open();
            }
            '|' => {
                self.skip(1);
                self.end_part();
                self.last = None;
                self.written.push('|');
            }
            ')' => self.close()?,
            '^' | '$' | '.' => {
                self.skip(1);
                self.part(&first.to_string());
            }
            '[' => {
                let (class, rest) = class::read(self.rest)?;
                self.rest = rest;
                self.part(&class);
            }
            '*' | '+' | '?' => {
                let after = &self.rest[1..];
                self.repeat(&first.to_string(), (0, 0), after, repeated)?;
            }
            '{' => match counts(self.rest) {
                Some(counts) => self.repeat_count(&counts, repeated)?,
                None => self.literal(first),
            },
            '\\' => self.escape()?,
            other => self.literal(other),
        }
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn literal(&mut self, c: char) {
        self.skip(c.len_utf8());
        self.part(&escape::written(c));
    }

    /// Writes a part that a repetition can repeat, under the flags of its place.
    fn part(&mut self, text: &str) {
        self.end_part();
        self.write_flags();
        self.written.push_str(text);
        self.last = Some(1);
    }

    fn end_part(&mut self) {
        self.copies = self.copies.max(self.last.unwrap_or(0));
    }

    fn write_flags(&mut self) {
        if self.flags == self.written_flags {
            return;
        }
        let letters =
            |wanted: bool| FLAGS.iter().zip(self.flags).filter(move |(_, on)| *on == wanted);
        let on: String = letters(true).map(|(letter, _)| letter).collect();
        let off: String = letters(false).map(|(letter, _)| letter).collect();
        let dash = if off.is_empty() { "" } else { "-" };
        self.written.extend(["(?", &on, dash, &off, ")"]);
        self.written_flags = self.flags;
    }

    fn open(&mut self) {
        self.end_part();
        self.write_flags();
        let (flags, written_flags) = (self.flags, self.written_flags);
        self.groups.push(Group { flags, written_flags, copies: self.copies });
        self.written.push_str("(?:");
        (self.last, self.copies) = (None, 0);
    }

    fn close(&mut self) -> Result<(), PatternError> {
        self.end_part();
        let group = self.groups.pop();
        let group = group.ok_or_else(|| PatternError::new("unexpected )", self.whole))?;
        if self.groups.len() >= MAX_DEPTH {
            return Err(PatternError::new("expression nests too deeply", self.whole));
        }
        self.skip(1);
        self.written.push(')');
        self.last = Some(self.copies.max(1));
        (self.flags, self.written_flags) = (group.flags, group.written_flags);
        self.copies = group.copies;
        Ok(())
    }

    /// Reads `(?flags)`, `(?flags:`, `(?P<name>` or `(?<name>`.
    fn flags_or_group(&mut self) -> Result<(), PatternError> {
        let text = self.rest;
        let name_at = if text.len() > 4 && text.starts_with("(?P<") { 4 } else { 3 };
        if name_at == 4 || text.len() > 3 && text.starts_with("(?<") {
            let wrong = |part| PatternError::new("invalid named capture", part);
            let end = text.find('>').ok_or_else(|| wrong(text))?;
            let name = &text[name_at..end.max(name_at)];
            let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(wrong(&text[..=end]));
            }
            self.skip(end + 1);
            self.open();
            return Ok(());
        }
        let (mut flags, mut value, mut saw) = (self.flags, true, false);
        let mut read = "(?".len();
        for c in text[read..].chars() {
            read += c.len_utf8();
            match (c, FLAGS.iter().position(|flag| *flag == c)) {
                (_, Some(at)) => (flags[at], saw) = (value, true),
                ('-', None) if value => (value, saw) = (false, false),
                (':' | ')', None) if value || saw => {
                    self.end_flags(read, c, flags);
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(PatternError::new("invalid or unsupported Perl syntax", &text[..read]))
    }

    /// Goes on after the flags, in a new group if a colon follows them.
    fn end_flags(&mut self, read: usize, end: char, flags: Flags) {
        self.skip(read);
        if end == ':' {
            self.open();
        }
        self.flags = flags;
    }

    fn repeat_count(
        &mut self,
        counts: &Counts<'t>,
        repeated: Option<&'t str>,
    ) -> Result<(), PatternError> {
        let Counts { least, most, after } = *counts;
        let part = &self.rest[..self.rest.len() - after.len()];
        if least.max(most.unwrap_or(0)) > MAX_REPEAT || most.is_some_and(|most| most < least) {
            return Err(PatternError::new("invalid repeat count", part));
        }
        let shown = most.map(|most| most.to_string()).unwrap_or_default();
        let written = format!("{{{least},{shown}}}");
        self.repeat(&written, (least, most.unwrap_or(least)), after, repeated)
    }

    /// Writes a repetition of the last part. `copies` are its bounds; zeros if it has none.
    fn repeat(
        &mut self,
        written: &str,
        copies: (u64, u64),
        after: &'t str,
        repeated: Option<&'t str>,
    ) -> Result<(), PatternError> {
        let text = self.rest;
        let lazy = after.strip_prefix('?');
        let after = lazy.unwrap_or(after);
        let part = |from: &'t str| &from[..from.len() - after.len()];
        if let Some(before) = repeated {
            return Err(PatternError::new("invalid nested repetition operator", part(before)));
        }
        let Some(inner) = self.last else {
            let problem = "missing argument to repetition operator";
            return Err(PatternError::new(problem, part(text)));
        };
        let is_counted = text.starts_with('{');
        let all = match copies.1 {
            _ if !is_counted => inner,
            0 if written.ends_with(",}") => inner,
            most => inner.saturating_mul(most),
        };
        if copies.0.max(copies.1) >= 2 && all > MAX_REPEAT {
            return Err(PatternError::new("invalid repeat count", part(text)));
        }
        self.written.push_str(written);
        self.written.push_str(if lazy.is_some() { "?" } else { "" });
        self.last = Some(all);
        self.repeated = Some(text);
        self.rest = after;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        let known = [("\\A", r"\A"), ("\\b", r"(?-u:\b)"), ("\\B", r"\B"), ("\\z", r"\z")];
        if let Some((escape, written)) = known.iter().find(|(text, _)| self.rest.starts_with(text))
        {
            self.skip(escape.len());
            self.part(written);
        } else if self.rest.starts_with("\\C") {
            return Err(PatternError::new("invalid escape sequence", "\\C"));
        } else if let Some(rest) = self.rest.strip_prefix("\\Q") {
            let (text, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            for c in text.chars() {
                self.part(&escape::written(c));
            }
            self.rest = rest;
        } else if let Some((class, rest)) = escape::class(self.rest)? {
            self.rest = rest;
            self.part(&class);
        } else {
            let (c, rest) = escape::character(self.rest)?;
            self.rest = rest;
            self.part(&escape::written(c));
        }
        Ok(())
    }
}

/// Reads `{n}`, `{n,}` or `{n,m}`.
fn counts(text: &str) -> Option<Counts<'_>> {
    let (least, rest) = count(text.strip_prefix('{')?)?;
    if let Some(after) = rest.strip_prefix('}') {
        return Some(Counts { least, most: Some(least), after });
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(after) = rest.strip_prefix('}') {
        return Some(Counts { least, most: None, after });
    }
    let (most, rest) = count(rest)?;
    Some(Counts { least, most: Some(most), after: rest.strip_prefix('}')? })
}

/// Reads a number without zeros in front of it. One that is too large becomes the largest.
fn count(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_plain = !digits.is_empty() && (digits.len() == 1 || !digits.starts_with('0'));
    is_plain.then(|| (digits.parse().unwrap_or(u64::MAX), rest))
}

#[cfg(test)]
mod tests;
