//! The names that expressions have for variables and fields.

/// Names that no variable may have.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Words that are literals or an operator. A field with such a name, or with a reserved one, is
/// written `__word__`.
const LITERALS: [&str; 4] = ["true", "false", "null", "in"];

/// Returns true if a variable of an expression may have this name: it is an identifier, and neither
/// a literal nor reserved.
///
/// # Examples
///
/// ```
/// use homeostat_schema::is_cel_identifier;
///
/// assert!(is_cel_identifier("_name1"));
/// assert!(!is_cel_identifier("1name") && !is_cel_identifier("package"));
/// ```
pub fn is_cel_identifier(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_plain) && !is_taken(name)
}

/// Returns true if the grammar gives the name another meaning.
pub(super) fn is_taken(name: &str) -> bool {
    LITERALS.contains(&name) || RESERVED.contains(&name)
}

/// Returns the name of a field in expressions; `None` if it cannot be written.
pub(crate) fn escape(name: &str) -> Option<String> {
    if is_taken(name) {
        return Some(format!("__{name}__"));
    }
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let readable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    if !starts_well || !name.chars().all(readable) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__");
    Some(escaped.replace('/', "__slash__"))
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_of_fields_are_escaped() {
        for (name, expected) in [
            ("a", Some("a")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("my_field", Some("my_field")),
            ("1a", None),
            ("a b", None),
        ] {
            assert_eq!(escape(name).as_deref(), expected);
        }
    }
}
