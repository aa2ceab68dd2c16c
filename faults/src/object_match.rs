//! Restrictions on the object of a request body or of a watch event.

use std::fmt;
use std::sync::Arc;

use http::Request;
use serde_json::Value;

/// Restrictions on an object; all of them must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectMatch {
    restrictions: Vec<Restriction>,
}

#[derive(Clone)]
enum Restriction {
    Label(String, String),
    /// A JSON pointer and the value there.
    Field(String, Value),
    That(Arc<dyn Fn(&Value) -> bool + Send + Sync>),
}

/// The object in the body of a request, as an extension of the request. A fault layer adds it if a
/// rule looks at bodies, for the rules of the server behind it.
#[derive(Debug, Clone)]
pub struct RequestObject(pub(crate) Arc<Value>);

// === impl ObjectMatch ===

impl ObjectMatch {
    pub(crate) fn label(&mut self, key: String, value: String) {
        self.restrictions.push(Restriction::Label(key, value));
    }

    pub(crate) fn field(&mut self, pointer: String, value: Value) {
        self.restrictions.push(Restriction::Field(pointer, value));
    }

    pub(crate) fn that(&mut self, holds: impl Fn(&Value) -> bool + Send + Sync + 'static) {
        self.restrictions.push(Restriction::That(Arc::new(holds)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.restrictions.is_empty()
    }

    /// Returns true if the restrictions hold for an object; without one, if there are none.
    pub(crate) fn holds(&self, object: Option<&Value>) -> bool {
        self.restrictions.iter().all(|restriction| object.is_some_and(|it| restriction.holds(it)))
    }
}

/// Writes ` with label app=web, /spec/replicas = 3`, or nothing.
impl fmt::Display for ObjectMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, restriction) in self.restrictions.iter().enumerate() {
            f.write_str(if at == 0 { " with " } else { ", " })?;
            write!(f, "{restriction:?}")?;
        }
        Ok(())
    }
}

// === impl Restriction ===

impl Restriction {
    fn holds(&self, object: &Value) -> bool {
        match self {
            Self::Label(key, value) => object["metadata"]["labels"][key] == **value,
            Self::Field(pointer, value) => object.pointer(pointer) == Some(value),
            Self::That(holds) => holds(object),
        }
    }
}

impl fmt::Debug for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key, value) => write!(f, "label {key}={value}"),
            Self::Field(pointer, value) => write!(f, "{pointer} = {value}"),
            Self::That(_) => f.write_str("a condition of the test"),
        }
    }
}

// === impl RequestObject ===

impl RequestObject {
    /// Returns the object that a fault layer has read from a request; `None` if no rule looks at
    /// bodies, or if the body is not JSON.
    pub fn of<B>(request: &Request<B>) -> Option<Self> {
        request.extensions().get().cloned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_restriction_must_hold() {
        let mut web = ObjectMatch::default();
        assert!(web.holds(None) && web.is_empty());
        web.label("app".to_owned(), "web".to_owned());
        web.field("/spec/replicas".to_owned(), json!(3));
        web.that(|object| object["metadata"]["name"] != "b");
        let object = |name, app, replicas| {
            json!({"metadata": {"name": name, "labels": {"app": app}},
                "spec": {"replicas": replicas}})
        };
        assert!(web.holds(Some(&object("a", "web", 3))));
        for other in [object("b", "web", 3), object("a", "db", 3), object("a", "web", 2)] {
            assert!(!web.holds(Some(&other)), "{other}");
        }
        assert!(!web.holds(None) && !web.holds(Some(&json!([1]))));
        let text = " with label app=web, /spec/replicas = 3, a condition of the test";
        assert_eq!(web.to_string(), text);
    }
}
