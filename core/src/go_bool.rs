//! Booleans as Go reads them.

/// Parses the spellings of Go's `strconv.ParseBool`; `None` for any other text.
///
/// # Examples
///
/// ```
/// use homeostat_core::parse_go_bool;
///
/// assert_eq!(parse_go_bool("T"), Some(true));
/// assert_eq!(parse_go_bool("0"), Some(false));
/// assert_eq!(parse_go_bool("yes"), None);
/// ```
#[doc(alias = "strconv.ParseBool")]
pub fn parse_go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
