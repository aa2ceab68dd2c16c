//! Texts that are shown to people: of any length, and from an author's code.

use std::fmt::{self, Display};

use homeostat_core::user_code;

/// The text of an author's value, such as a key. A panic of its `Display` does not reach the
/// caller.
///
/// A logger, a debug page or a shutdown that lists keys must not end with a mistake in one of them.
pub(crate) struct Guarded<'a, T: ?Sized>(pub(crate) &'a T);

// === impl Guarded ===

impl<T: Display + ?Sized> Display for Guarded<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = user_code("display", || self.0.fmt(f));
        shown.unwrap_or_else(|_| f.write_str("(its text panicked)"))
    }
}

/// Returns the first `longest` characters of a text.
pub(crate) fn beginning(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    text.char_indices().nth(longest).map_or(text, |(end, _)| &text[..end])
}

/// For tests: a key whose `Display` panics.
#[cfg(test)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Textless;

#[cfg(test)]
impl Display for Textless {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_that_panics_has_a_text() {
        assert_eq!(format!("key {}", Guarded(&Textless)), "key (its text panicked)");
        assert_eq!(format!("key {}", Guarded("a/b")), "key a/b");
    }

    #[test]
    fn beginning_ends_between_characters() {
        assert_eq!(beginning("äöü", 2), "äö");
        assert_eq!(beginning("äöü", 3), "äöü");
        assert_eq!(beginning("äöü", 6), "äöü");
        assert_eq!(beginning("abc", 0), "");
    }
}
