//! [`Scope`]: a namespace and selectors.

use std::fmt;

/// The objects of a kind that an informer follows: a namespace or all of them, and selectors.
///
/// Use a scope to receive only the objects that the controller needs: the API server filters, so
/// the others cost neither network nor memory. A controller with permissions in only one namespace
/// needs [`Scope::namespace`], because a list over all namespaces is forbidden for it.
///
/// Two scopes are equal if their namespaces and the texts of their selectors are equal: `a=1,b=2`
/// and `b=2,a=1` are different scopes, and a
/// [`SharedInformerFactory`](crate::SharedInformerFactory) builds an informer for each.
///
/// client-go sets the same by `WithNamespace` and `WithTweakListOptions`.
///
/// # Examples
///
/// ```
/// use homeostat_informer::Scope;
///
/// let web = Scope::namespace("shop").labels("app=web").fields("status.phase!=Failed");
/// let text = "in namespace shop with labels app=web with fields status.phase!=Failed";
/// assert_eq!(web.to_string(), text);
/// ```
#[doc(alias = "WithNamespace")]
#[doc(alias = "WithTweakListOptions")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// `None` for all namespaces.
    namespace: Option<String>,
    /// The text of `labelSelector`, as the caller gave it.
    labels: Option<String>,
    /// The text of `fieldSelector`, as the caller gave it.
    fields: Option<String>,
}

// === impl Scope ===

impl Scope {
    /// Selects all objects of the kind, in all namespaces. This is the default.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::Scope;
    ///
    /// assert_eq!(Scope::all(), Scope::default());
    /// assert_eq!(Scope::all().to_string(), "everywhere");
    /// ```
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects the objects in one namespace.
    ///
    /// The kind must have namespaces: the API server answers a list of `nodes` in a namespace with
    /// 404.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Narrows the scope to objects whose labels match, in the API server's syntax:
    /// `app=web,tier!=cache`.
    ///
    /// The API server checks the selector; an invalid one makes the list fail with status 400.
    ///
    /// A second call replaces the selector of the first. An object whose labels change so that they
    /// do not match any more is reported as deleted, because the watch reports it so.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Narrows the scope to objects whose fields match, in the API server's syntax:
    /// `status.phase!=Failed`.
    ///
    /// Only the fields that the API server indexes for the kind can be selected.
    ///
    /// For the built-in kinds these are `metadata.name`, `metadata.namespace` and a few others,
    /// such as `spec.nodeName` of pods. A second call replaces the selector of the first.
    ///
    /// # Examples
    ///
    /// The pods of one node:
    ///
    /// ```
    /// use homeostat_informer::Scope;
    ///
    /// let own = Scope::all().fields("spec.nodeName=node-1");
    /// assert_eq!(own.to_string(), "everywhere with fields spec.nodeName=node-1");
    /// ```
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Returns the namespace, or `None` for all of them.
    pub(crate) fn namespace_name(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the selectors, each with the name of its query parameter.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let labels = self.labels.as_deref().map(|labels| ("labelSelector", labels));
        let fields = self.fields.as_deref().map(|fields| ("fieldSelector", fields));
        labels.into_iter().chain(fields)
    }

    /// Returns the selectors as words, such as ` with labels app=web`; empty if there is none.
    pub(crate) fn selector_text(&self) -> String {
        let labels = self.labels.iter().map(|labels| format!(" with labels {labels}"));
        labels.chain(self.fields.iter().map(|fields| format!(" with fields {fields}"))).collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "in namespace {namespace}")?,
            None => f.write_str("everywhere")?,
        }
        f.write_str(&self.selector_text())
    }
}
