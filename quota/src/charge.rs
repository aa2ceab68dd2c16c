//! The charge of an object: the amounts that a quota counts, and the facts for its scopes.

use homeostat_quantity::ResourceList;
use jiff::{SignedDuration, Timestamp};

use crate::scope::ScopeFacts;

/// The charge of one version of an object.
///
/// It is computed once per version and is all that a recount reads. Equality is by value, so that
/// two versions with equal charges need no recount between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charge {
    always: ResourceList,
    /// The rest, which ends at `until`.
    relevant: ResourceList,
    until: Option<Timestamp>,
    scopes: ScopeFacts,
}

// === impl Charge ===

impl Charge {
    /// Returns a charge that has no end.
    pub fn new(usage: ResourceList, scopes: ScopeFacts) -> Self {
        Self { always: usage, relevant: ResourceList::new(), until: None, scopes }
    }

    /// Adds amounts that are charged up to and including `until`.
    #[must_use]
    pub(crate) fn with_relevant(mut self, usage: ResourceList, until: Option<Timestamp>) -> Self {
        (self.relevant, self.until) = (usage, until);
        self
    }

    /// Returns the facts that decide in which scopes the object is.
    pub fn scopes(&self) -> &ScopeFacts {
        &self.scopes
    }

    /// Returns the last moment at which the whole charge counts, for a pod that is being deleted.
    ///
    /// A recount after it counts less although no event has occurred.
    pub fn until(&self) -> Option<Timestamp> {
        self.until
    }

    /// Returns the amounts that are charged at `now`.
    pub fn usage(&self, now: Timestamp) -> ResourceList {
        let mut usage = self.always.clone();
        if self.is_relevant(now) {
            usage += &self.relevant;
        }
        usage
    }

    /// Returns the parts of the charge at `now`.
    pub(crate) fn parts(&self, now: Timestamp) -> impl Iterator<Item = &ResourceList> {
        let relevant = self.is_relevant(now).then_some(&self.relevant);
        std::iter::once(&self.always).chain(relevant)
    }

    /// Returns true if a recount may differ after an update from this charge to `new`.
    ///
    /// This is the update filter of every evaluator: the charge at `now` differs by value, or when
    /// it ends, or membership in a scope may differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_quantity::ResourceList;
    /// use homeostat_quota::{Charge, ScopeFacts};
    /// use jiff::Timestamp;
    ///
    /// let charge = |cpu: &str| {
    ///     ResourceList::parse([("cpu", cpu)]).map(|list| Charge::new(list, ScopeFacts::None))
    /// };
    /// let now = Timestamp::UNIX_EPOCH;
    /// assert!(!charge("1")?.needs_recount(&charge("1000m")?, now));
    /// assert!(charge("1")?.needs_recount(&charge("2")?, now));
    /// # Ok::<(), homeostat_quantity::ParseListError>(())
    /// ```
    pub fn needs_recount(&self, new: &Self, now: Timestamp) -> bool {
        const NOTHING: &ResourceList = &ResourceList::new();
        let end = |charge: &Self| {
            charge.until.filter(|_| charge.is_relevant(now) && !charge.relevant.is_empty())
        };
        let (ours, theirs) = (self.parts(now).nth(1), new.parts(now).nth(1));
        self.scopes != new.scopes
            || self.always != new.always
            || ours.unwrap_or(NOTHING) != theirs.unwrap_or(NOTHING)
            || end(self) != end(new)
    }

    fn is_relevant(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now <= until)
    }
}

/// Adds seconds to a time, limited to the times that exist.
pub(crate) fn after(time: Timestamp, seconds: i64) -> Timestamp {
    let end = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    time.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(end)
}
