//! Texts that are shown to people, of any length.

/// Returns the first `longest` characters of a text.
pub(crate) fn beginning(text: &str, longest: usize) -> &str {
    if text.len() <= longest {
        return text;
    }
    text.char_indices().nth(longest).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_ends_between_characters() {
        assert_eq!(beginning("äöü", 2), "äö");
        assert_eq!(beginning("äöü", 3), "äöü");
        assert_eq!(beginning("äöü", 6), "äöü");
        assert_eq!(beginning("abc", 0), "");
    }
}
