//! Which requests a fault hits.

use super::call::{Call, Verb};

/// Which requests a fault hits: who asks, what for, the how-manieth of them, and with what probability.
///
/// Made for one verb and one plural resource, without its subresources. By default it is the first such request from
/// now on that is hit, and it alone.
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::faults::Calls;
///
/// // "The third create of a pod by the client `controller`".
/// let third = Calls::create("pods").by("controller").nth(3);
/// // "One request in twenty, whatever it is".
/// let some = Calls::any().chance(0.05);
/// # let _ = (third, some);
/// ```
#[derive(Debug, Clone)]
#[must_use = "it says which requests are hit; give it to a fault"]
pub struct Calls {
    client: Option<String>,
    verbs: Verbs,
    /// None: any.
    resource: Option<String>,
    subresource: Subresource,
    namespace: Option<String>,
    name: Option<String>,
    /// The first request that is hit, counted from one.
    pub(super) first: u64,
    /// How many are hit from there on; none: as many as make sense.
    pub(super) times: Option<u64>,
    /// How likely each of them is hit; none: certainly.
    pub(super) chance: Option<f64>,
}

#[derive(Debug, Clone)]
enum Verbs {
    Any,
    Mutating,
    Is(Verb),
}

#[derive(Debug, Clone)]
enum Subresource {
    Is(Option<String>),
    Any,
}

// === impl Calls ===

impl Calls {
    /// Any request at all.
    pub fn any() -> Self {
        Self {
            client: None,
            verbs: Verbs::Any,
            resource: None,
            subresource: Subresource::Any,
            namespace: None,
            name: None,
            first: 1,
            times: None,
            chance: None,
        }
    }

    /// Any request that may change what is stored.
    pub fn mutating() -> Self {
        Self { verbs: Verbs::Mutating, ..Self::any() }
    }

    /// Requests that do `verb` on `resource`, a plural such as `pods`.
    pub fn to(verb: Verb, resource: impl Into<String>) -> Self {
        Self {
            verbs: Verbs::Is(verb),
            resource: Some(resource.into()),
            subresource: Subresource::Is(None),
            ..Self::any()
        }
    }

    /// Requests of any verb on `resource` and its subresources.
    pub fn on(resource: impl Into<String>) -> Self {
        Self { resource: Some(resource.into()), ..Self::any() }
    }

    /// Reads of one object.
    pub fn get(resource: impl Into<String>) -> Self {
        Self::to(Verb::Get, resource)
    }

    /// Reads of a collection.
    pub fn list(resource: impl Into<String>) -> Self {
        Self::to(Verb::List, resource)
    }

    /// Watches, when they open.
    pub fn watch(resource: impl Into<String>) -> Self {
        Self::to(Verb::Watch, resource)
    }

    /// Watches of anything, when they open.
    pub fn watches() -> Self {
        Self { verbs: Verbs::Is(Verb::Watch), ..Self::any() }
    }

    /// Creates.
    pub fn create(resource: impl Into<String>) -> Self {
        Self::to(Verb::Create, resource)
    }

    /// Updates (PUT).
    pub fn update(resource: impl Into<String>) -> Self {
        Self::to(Verb::Update, resource)
    }

    /// Patches.
    pub fn patch(resource: impl Into<String>) -> Self {
        Self::to(Verb::Patch, resource)
    }

    /// Deletes of one object.
    pub fn delete(resource: impl Into<String>) -> Self {
        Self::to(Verb::Delete, resource)
    }

    /// Only those of the client of this name.
    pub fn by(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Only those on this subresource, for instance `status`.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Subresource::Is(Some(subresource.into()));
        self
    }

    /// Only those in this namespace.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only those that name this object in their path; a create does not.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The first one that is hit, counted from one; those before it pass.
    pub fn nth(mut self, nth: u64) -> Self {
        self.first = nth;
        self
    }

    /// How many are hit: in a row, unless [`chance`](Self::chance) leaves some out.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// All from the first one on, until [`Faults::heal`](super::Faults::heal).
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Each with this probability, between 0 and 1, drawn from the seed; any number of them, unless
    /// [`times`](Self::times) says how many.
    pub fn chance(mut self, probability: f64) -> Self {
        self.chance = Some(probability);
        self
    }

    /// What is meant, in a few words.
    pub(super) fn words(&self) -> String {
        let verb = match self.verbs {
            Verbs::Any => "anything".to_owned(),
            Verbs::Mutating => "writes".to_owned(),
            Verbs::Is(verb) => verb.to_string(),
        };
        let mut words = format!("{verb} {}", self.resource.as_deref().unwrap_or("*"));
        if let Some(client) = &self.client {
            words = format!("{words} by {client}");
        }
        words
    }

    pub(super) fn matches(&self, call: &Call) -> bool {
        let is = |wanted: &Option<String>, got: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| got == Some(wanted))
        };
        self.verbs.include(call.verb)
            && is(&self.client, Some(&call.client))
            && is(&self.resource, Some(&call.resource))
            && is(&self.namespace, call.namespace.as_deref())
            && is(&self.name, call.name.as_deref())
            && match &self.subresource {
                Subresource::Any => true,
                Subresource::Is(subresource) => *subresource == call.subresource,
            }
    }
}

/// The open watches of a resource; `"*"`: of any.
impl From<&str> for Calls {
    fn from(resource: &str) -> Self {
        if resource == "*" { Self::watches() } else { Self::watch(resource) }
    }
}

// === impl Verbs ===

impl Verbs {
    fn include(&self, verb: Verb) -> bool {
        match self {
            Self::Any => true,
            Self::Mutating => verb.is_mutating(),
            Self::Is(wanted) => *wanted == verb,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_selector_without_a_subresource_leaves_subresources_alone() {
        let uri = "/api/v1/namespaces/a/pods/p/status".parse().unwrap();
        let status = Call::parse("me".into(), &Method::PATCH, &uri);
        assert!(!Calls::patch("pods").matches(&status));
        assert!(Calls::patch("pods").subresource("status").matches(&status));
        assert!(Calls::on("pods").matches(&status));
        assert!(Calls::any().matches(&status));
        assert!(Calls::mutating().matches(&status));
        assert!(!Calls::watches().matches(&status));
        assert!(Calls::on("pods").named("p").in_namespace("a").matches(&status));
        assert!(!Calls::on("pods").named("q").matches(&status));
        assert!(!Calls::on("pods").in_namespace("b").matches(&status));
        assert!(Calls::any().by("me").matches(&status));
        assert!(!Calls::any().by("you").matches(&status));
    }
}
