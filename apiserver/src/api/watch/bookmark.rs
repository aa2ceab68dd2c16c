//! [`Template`]: a bookmark around its revision.

use bytes::Bytes;
use memchr::memmem;

/// The text of a bookmark before and after its revision.
///
/// A watch sends a bookmark in each minute, and they differ in nothing else.
pub(super) struct Template {
    before: Bytes,
    after: Bytes,
}

// === impl Template ===

impl Template {
    /// Splits a bookmark at its revision. `None` if it does not state it exactly once: a row of a
    /// table does so again, and protobuf in another form.
    pub(super) fn of(bookmark: &Bytes, revision: u64) -> Option<Self> {
        let stated = format!("\"resourceVersion\":\"{revision}\"");
        let mut places = memmem::find_iter(bookmark, &stated);
        let place = places.next().filter(|_| places.next().is_none())?;
        let end = place + stated.len() - 1;
        let start = end - revision.to_string().len();
        Some(Self { before: bookmark.slice(..start), after: bookmark.slice(end..) })
    }

    /// Returns the bookmark at a revision.
    pub(super) fn at(&self, revision: u64) -> Bytes {
        let revision = revision.to_string();
        [&*self.before, revision.as_bytes(), &*self.after].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmark_that_states_its_revision_once_has_a_template() {
        let event = |revision: &str| {
            let object = format!("{{\"metadata\":{{\"resourceVersion\":\"{revision}\"}}}}");
            Bytes::from(format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n"))
        };
        let template = Template::of(&event("9"), 9).unwrap();
        assert_eq!(template.at(9), event("9"));
        assert_eq!(template.at(1234), event("1234"));
        let twice = [event("9"), event("9")].concat().into();
        assert!(Template::of(&twice, 9).is_none());
        assert!(Template::of(&event("9"), 19).is_none());
    }
}
