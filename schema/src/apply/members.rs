//! The members of an object, found in one pass.

use std::cmp::Ordering;
use std::iter::{Flatten, Peekable};
use std::option;

use serde_json::{Map, Value};

/// Finds members by name. If the names are those of an object with the same order, most are found
/// without a search.
pub(super) struct Members<'v> {
    object: Option<&'v Map<String, Value>>,
    rest: Peekable<Flatten<option::IntoIter<&'v Map<String, Value>>>>,
}

// === impl Members ===

impl<'v> Members<'v> {
    pub(super) fn of(object: Option<&'v Map<String, Value>>) -> Self {
        Self { object, rest: object.into_iter().flatten().peekable() }
    }

    /// Returns the value of a member.
    pub(super) fn find(&mut self, name: &String) -> Option<&'v Value> {
        while let Some((other, _)) = self.rest.peek() {
            match (*other).cmp(name) {
                Ordering::Less => drop(self.rest.next()),
                Ordering::Equal => return self.rest.next().map(|(_, value)| value),
                Ordering::Greater => break,
            }
        }
        // The names may have another order than the members.
        self.object?.get(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_found_in_any_order_of_names() {
        let object = json!({"a": 1, "b": 2, "d": 4});
        let object = object.as_object();
        for names in ["abcd", "dcba", "bbad", "xdab"] {
            let mut members = Members::of(object);
            for name in names.chars().map(String::from) {
                let expected = object.and_then(|object| object.get(&name));
                assert_eq!(members.find(&name), expected, "{name} of {names}");
            }
        }
        assert_eq!(Members::of(None).find(&"a".to_owned()), None);
    }
}
