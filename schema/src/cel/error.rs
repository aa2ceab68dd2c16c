//! The errors of the compiler, with their positions, and those of an evaluation.

use std::fmt;
use std::fmt::Write;

/// Errors of the compiler: the byte where each was found, and its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Issues(Vec<(usize, String)>);

/// An error of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvalError {
    /// The expression has no value, such as for a division by zero.
    Failed(String),
    /// The evaluation took too many steps.
    Limit,
}

// === impl Issues ===

impl Issues {
    pub(crate) fn add(&mut self, at: usize, text: impl Into<String>) {
        self.0.push((at, text.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the errors as cel-go does, with the lines that they are on.
    pub(crate) fn show(&self, source: &str) -> String {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by_key(|(at, _)| *at);
        sorted.dedup();
        let texts: Vec<String> =
            sorted.into_iter().map(|(at, text)| one(source, *at, text)).collect();
        texts.join("\n")
    }
}

fn one(source: &str, at: usize, text: &str) -> String {
    let before = source.get(..at).unwrap_or(source);
    let line = before.matches('\n').count();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before[start..].chars().count();
    let shown = source[start..].split('\n').next().unwrap_or_default().replace('\t', " ");
    if source.is_empty() {
        return format!("ERROR: <input>:1:0: {text}");
    }
    let mut written = format!("ERROR: <input>:{}:{}: {text}", line + 1, column + 1);
    let _ = write!(written, "\n | {shown}\n | {}^", ".".repeat(column));
    written
}

// === impl EvalError ===

impl EvalError {
    /// Creates the error for arguments that no form of a function or operator takes.
    pub(crate) fn no_such_overload() -> Self {
        Self::Failed("no such overload".to_owned())
    }

    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::Limit => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_their_line_and_column() {
        let mut issues = Issues::default();
        issues.add(9, "second");
        issues.add(0, "first");
        let expected = "ERROR: <input>:1:1: first\n | é\n | ^\n\
                        ERROR: <input>:2:7: second\n | ab cdef\n | ......^";
        assert_eq!(issues.show("é\nab cdef"), expected);
        let mut issues = Issues::default();
        issues.add(0, "first");
        assert_eq!(issues.show(""), "ERROR: <input>:1:0: first");
    }
}
