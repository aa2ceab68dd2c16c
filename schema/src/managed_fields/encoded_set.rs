//! Reads encoded owners, and a set of them beside the fields that a write changes, without decoding
//! it.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr2;
use memchr::memmem::Finder;

use crate::apply::{Type, is_atomic, type_below};
use crate::field_set::{FieldSet, NO_FIELDS, PathElement, write_quoted};

/// The expected members of an encoded set, or of the part of it below a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'s> {
    /// The members that it must have.
    pub(super) wanted: &'s FieldSet,
    /// The members that it must not have, in two sets.
    pub(super) excluded: [&'s FieldSet; 2],
}

/// The rest of encoded owners, or of a set. It has the form that this crate writes, without spaces;
/// in another one nothing is found.
pub(super) struct Rest<'t>(pub(super) &'t str);

/// A node of a set.
struct Node {
    is_member: bool,
    has_children: bool,
}

/// A node without children, which stands for itself.
const LEAF: Node = Node { is_member: true, has_children: false };

/// The expectations of a node, apart from those below it.
#[derive(Debug, Clone, Copy, Default)]
struct ExpectedNode {
    is_wanted: bool,
    /// True if it is wanted, or a node below it is.
    is_on_path: bool,
    is_excluded: bool,
}

// === impl Expected ===

impl Expected<'_> {
    /// Returns true if an encoded set of the type has members, is as expected, and is current: it
    /// has no members below a value that is atomic. Without a type it is known to be current.
    pub(super) fn is_met_by(self, set: &str, of: Option<Type<'_>>) -> bool {
        if of.is_none() && self.is_apart_from(set) {
            return set != "{}";
        }
        let mut rest = Rest(set);
        let node = rest.node(self, of);
        node.is_some_and(|node| node.has_children) && rest.0.is_empty()
    }

    /// Returns true if no member is expected, and the set does not name the fields that all
    /// excluded members are below. Most sets of other managers are such.
    fn is_apart_from(self, set: &str) -> bool {
        let is_absent = |element: &PathElement| {
            let PathElement::Field(name) = element else { return false };
            let mut quoted = String::with_capacity(32);
            write_quoted("f:", name, &mut quoted);
            !set.contains(&quoted)
        };
        let mut excluded = self.excluded.into_iter().flat_map(FieldSet::entries);
        self.wanted.is_empty() && excluded.all(|(element, ..)| is_absent(element))
    }

    fn is_empty(self) -> bool {
        self.wanted.is_empty() && self.excluded.iter().all(|set| set.is_empty())
    }

    /// Returns the expectations of the node with this name, and of those below it; `None` if the
    /// name is no path element.
    fn at(self, name: &str) -> Option<(ExpectedNode, Self)> {
        if self.is_empty() {
            return Some((ExpectedNode::default(), self));
        }
        let Self { wanted, excluded: [one, other] } = self;
        let element = PathElement::parse(name).ok()?;
        let [wanted, one, other] = [wanted, one, other].map(|set| set.node(&element));
        let children = |node: Option<(bool, _)>| node.map_or(&NO_FIELDS, |(_, children)| children);
        let is_member = |node: Option<(bool, _)>| node.is_some_and(|(is_member, _)| is_member);
        let node = ExpectedNode {
            is_wanted: is_member(wanted),
            is_on_path: wanted.is_some(),
            is_excluded: is_member(one) || is_member(other),
        };
        let excluded = [children(one), children(other)];
        Some((node, Self { wanted: children(wanted), excluded }))
    }
}

// === impl ExpectedNode ===

impl ExpectedNode {
    fn is_met_by(self, node: &Node) -> bool {
        if node.is_member { !self.is_excluded } else { !self.is_wanted }
    }
}

// === impl Rest ===

impl<'t> Rest<'t> {
    /// Reads a node. Returns `None` if it, or a node below it, is not as expected or not current.
    fn node(&mut self, expected: Expected<'_>, of: Option<Type<'_>>) -> Option<Node> {
        if self.skip("{}") {
            return expected.wanted.is_empty().then_some(LEAF);
        }
        let (mut is_member, mut has_children, mut found) = (false, false, 0);
        let mut before = "{";
        while self.skip(before) {
            before = ",";
            let name = self.name()?;
            if name == "." {
                is_member = self.skip("{}");
                continue;
            }
            has_children = true;
            let (wanted, below) = expected.at(&name)?;
            let child = self.child(&name, below, of)?;
            if !wanted.is_met_by(&child) {
                return None;
            }
            found += usize::from(wanted.is_on_path);
        }
        let is_complete = self.skip("}") && has_children && found == expected.wanted.len();
        is_complete.then_some(Node { is_member, has_children })
    }

    /// Reads the node with this name in a node of the type.
    fn child(&mut self, name: &str, expected: Expected<'_>, of: Option<Type<'_>>) -> Option<Node> {
        if self.0.starts_with("{}") {
            return self.node(expected, None);
        }
        if of.is_none() && expected.is_empty() {
            // A write changes few fields: most of a set is skipped here.
            let node = self.skip_node()?;
            let is_member = node.starts_with(r#"{".":{}"#);
            return Some(Node { is_member, has_children: true });
        }
        let of = of.and_then(|of| type_below(of, name.strip_prefix("f:")));
        if of.is_some_and(is_atomic) {
            return None;
        }
        self.node(expected, of)
    }

    /// Reads the name of a member and the colon behind it.
    fn name(&mut self) -> Option<Cow<'t, str>> {
        let quoted = self.0.strip_prefix('"')?;
        let end = quoted.bytes().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if let Some(rest) = quoted[end..].strip_prefix("\":") {
            self.0 = rest;
            return Some(Cow::Borrowed(&quoted[..end]));
        }
        let mut names = serde_json::Deserializer::from_str(self.0).into_iter::<String>();
        let name = names.next()?.ok()?;
        self.0 = self.0[names.byte_offset()..].strip_prefix(':')?;
        Some(Cow::Owned(name))
    }

    /// Reads a text without an escape that follows `before`, its opening quote included. It is
    /// empty if `before` does not follow.
    pub(super) fn text_after(&mut self, before: &str) -> Option<&'t str> {
        if !self.skip(before) {
            return Some("");
        }
        let end = self.0.bytes().position(|byte| matches!(byte, b'"' | b'\\'))?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix('"')?;
        Some(text)
    }

    /// Skips the set of an entry, and returns its text.
    ///
    /// The search for what follows is faster than a look at each node. It finds no name, because a
    /// quote in a name has an escape.
    pub(super) fn skip_set(&mut self) -> Option<&'t str> {
        static OPERATION: LazyLock<Finder<'static>> =
            LazyLock::new(|| Finder::new(r#","operation":""#));
        static MANAGER: LazyLock<Finder<'static>> =
            LazyLock::new(|| Finder::new(r#","manager":""#));
        let entry = &self.0.as_bytes()[..OPERATION.find(self.0.as_bytes())?];
        // An empty name is left out.
        let end = MANAGER.find(entry).unwrap_or(entry.len());
        let (set, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        (set.starts_with('{') && set.ends_with('}')).then_some(set)
    }

    /// Skips a node and what is below it, and returns its text.
    fn skip_node(&mut self) -> Option<&'t str> {
        let bytes = self.0.as_bytes();
        let (mut depth, mut at) = (0_usize, 0);
        loop {
            match bytes.get(at)? {
                b'"' => at = end_of_name(bytes, at + 1)?,
                b'{' => depth += 1,
                b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                let (node, rest) = self.0.split_at_checked(at)?;
                self.0 = rest;
                return node.starts_with('{').then_some(node);
            }
        }
    }

    /// Skips this text; returns whether it was there.
    pub(super) fn skip(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

/// Returns the position of the quote that ends a name.
fn end_of_name(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        at += memchr2(b'"', b'\\', rest)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_schema::thing;

    static NOTHING: Expected<'_> =
        Expected { wanted: &NO_FIELDS, excluded: [&NO_FIELDS, &NO_FIELDS] };

    /// Returns true if a set of a `Thing` is as expected.
    fn is_met(expected: Expected<'_>, set: &str) -> bool {
        let schema = thing();
        let of = Type::Root(schema.root());
        let is_met = expected.is_met_by(set, Some(of));
        let is_current = NOTHING.is_met_by(set, Some(of));
        let is_met_untyped = expected.is_met_by(set, None);
        assert!(!is_current || is_met == is_met_untyped, "{set} without its type");
        is_met
    }

    #[test]
    fn set_below_an_atomic_value_is_not_current() {
        assert!(is_met(NOTHING, r#"{"f:spec":{"f:frozen":{},"f:pair":{"f:left":{}}}}"#));
        assert!(!is_met(NOTHING, r#"{"f:spec":{"f:frozen":{"f:left":{}}}}"#));
    }

    #[test]
    fn set_of_built_in_type_is_read_if_it_names_what_is_excluded() {
        let set = r#"{"f:spec":{"f:a":{}}}"#;
        let without = |excluded: &Value| {
            let excluded = FieldSet::from_fields_v1(excluded).unwrap();
            Expected { excluded: [&excluded, &NO_FIELDS], ..NOTHING }.is_met_by(set, None)
        };
        assert!(without(&json!({"f:status": {"f:a": {}}, "f:a\"b": {}})));
        assert!(without(&json!({"f:spec": {"f:b": {}}})));
        assert!(!without(&json!({"f:status": {"f:a": {}}, "f:spec": {"f:a": {}}})));
        assert!(!NOTHING.is_met_by("{}", None), "it has no members");
    }

    #[test]
    fn set_has_all_wanted_members_and_no_excluded_one() {
        let set =
            r#"{"f:spec":{"f:labels":{".":{},"f:a":{}},"f:parts":{"k:{\"name\":\"x\"}":{}}}}"#;
        let decoded = |set: &Value| FieldSet::from_fields_v1(set).unwrap();
        let wanting =
            |set_of: &Value| is_met(Expected { wanted: &decoded(set_of), ..NOTHING }, set);
        assert!(wanting(&json!({"f:spec": {"f:labels": {}}})));
        assert!(wanting(&json!({"f:spec": {"f:parts": {r#"k:{"name":"x"}"#: {}}}})));
        assert!(!wanting(&json!({"f:spec": {"f:parts": {}}})), "it stands for itself");
        assert!(!wanting(&json!({"f:spec": {"f:labels": {"f:b": {}}}})));
        let without = |set_of: &Value| {
            is_met(Expected { excluded: [&NO_FIELDS, &decoded(set_of)], ..NOTHING }, set)
        };
        assert!(without(&json!({"f:spec": {"f:labels": {"f:b": {}}, "f:parts": {}}})));
        assert!(!without(&json!({"f:spec": {"f:labels": {}}})));
        assert!(!without(&json!({"f:spec": {"f:parts": {r#"k:{"name":"x"}"#: {}}}})));
    }

    #[test]
    fn node_is_skipped_with_what_is_below_it() {
        let (node, rest) = (r#"{"k:{\"a\":\"}\\\\\"}":{".":{},"f:b":{}}}"#, r#","f:c":{}}"#);
        let text = format!("{node}{rest}");
        let mut read = Rest(&text);
        assert_eq!(read.skip_node(), Some(node));
        assert_eq!(read.0, rest);
        for text in ["", "}", "1", r#"{"f:a":{}"#, r#"{"a}"#, r#"{"a\"}"#, r#"{"a\"#] {
            assert_eq!(Rest(text).skip_node(), None, "{text}");
        }
    }

    #[test]
    fn set_ends_before_the_manager_or_the_operation() {
        let set = r#"{"f:a,\"manager\":\"":{},"k:{\"name\":\",\\\"operation\\\":\"}":{".":{}}}"#;
        assert!(serde_json::from_str::<Value>(set).is_ok());
        let manager = r#","manager":"kubectl""#;
        let operation = r#","operation":"Update","manager":"later"}]"#;
        for rest in [format!("{manager}{operation}"), operation.to_owned()] {
            let text = format!("{set}{rest}");
            let mut read = Rest(&text);
            assert_eq!(read.skip_set(), Some(set));
            assert_eq!(read.0, rest);
        }
        for text in ["", set, r#"null,"operation":""#, r#"{,"manager":"","operation":""#] {
            assert_eq!(Rest(text).skip_set(), None, "{text}");
        }
    }

    #[test]
    fn set_in_another_form_is_not_read() {
        for set in ["", "{}", "null", r#"{"f:spec": {}}"#, r#"{"f:spec":{}"#, r#"{"f:spec":{}}}"#] {
            assert!(!is_met(NOTHING, set), "{set}");
        }
        for set in [r#"{"f:spec":{},}"#, r#"{"f:spec":1}"#, r#"{"f:spec":{},"f:a"}"#, r#"{"."}"#] {
            assert!(!is_met(NOTHING, set), "{set}");
        }
    }
}
