//! The context of a schema.

/// The schemas around a schema, as far as they decide what it may have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around {
    pub(super) is_root: bool,
    /// True inside `apiVersion`, `kind` and `metadata` of an object.
    pub(super) is_meta: bool,
    /// The reason why a default is forbidden.
    pub(super) no_default: Option<&'static str>,
}
