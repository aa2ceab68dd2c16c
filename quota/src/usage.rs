//! Usage: the sum of the charges in a namespace that a quota counts.

use homeostat_quantity::{Quantity, ResourceList, ResourceName, names};
use jiff::Timestamp;

use crate::charge::Charge;
use crate::device_class::DeviceClassMapping;
use crate::evaluator::Evaluator;
use crate::registry::Registry;
use crate::scope::{ScopeError, Scopes};

/// The sum of the charges of one evaluator's objects in a namespace (upstream:
/// `CalculateUsageStats`).
///
/// Only the names of the quota are summed. Each starts at `0` in the format `DecimalSI`, and
/// so takes the format of the first charge: `51Gi`.
#[derive(Debug, Clone)]
pub struct Tally<'a> {
    evaluator: &'a Evaluator,
    scopes: &'a Scopes,
    now: Timestamp,
    used: ResourceList,
    next_release: Option<Timestamp>,
}

/// The outcome of [`Recount::calculate_usage`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Usage<E> {
    /// The usage of each name whose evaluators all succeeded.
    pub used: ResourceList,
    /// The errors of the others.
    pub errors: Vec<E>,
    /// The last moment before this usage falls without an event, because the charge of a pod ends.
    pub next_release: Option<Timestamp>,
}

/// A recount of a quota: everything that does not depend on the objects.
///
/// # Examples
///
/// ```
/// use std::convert::Infallible;
///
/// use homeostat_quantity::ResourceName;
/// use homeostat_quota::{DeviceClassMapping, Recount, Registry, Scopes};
/// use jiff::Timestamp;
///
/// let recount = Recount {
///     registry: &Registry::new(Default::default()),
///     classes: &DeviceClassMapping::default(),
///     scopes: &Scopes::default(),
///     now: Timestamp::now(),
/// };
/// let hard = ["secrets", "services", "unknown"].map(ResourceName::from);
/// let usage = recount.calculate_usage(&hard, |evaluator, tally| {
///     if evaluator.is_counter() {
///         tally.add_count(3);
///     }
///     Ok::<_, Infallible>(())
/// });
/// assert_eq!(usage.used.to_string(), "secrets=3,services=0");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Recount<'a> {
    /// The evaluators.
    pub registry: &'a Registry,
    /// The mapping between device classes and extended resources.
    pub classes: &'a DeviceClassMapping,
    /// The scopes of the quota.
    pub scopes: &'a Scopes,
    /// The time.
    pub now: Timestamp,
}

// === impl Recount ===

impl Recount<'_> {
    /// Calculates the usage of the names in `hard` (upstream: `CalculateUsage`).
    ///
    /// `count` is called for each evaluator that counts one of the names. It passes the charge of
    /// each object in the namespace to the [`Tally`]. If it fails, the evaluator's names are left
    /// out of the result.
    pub fn calculate_usage<E>(
        &self,
        hard: &[ResourceName],
        mut count: impl FnMut(&Evaluator, &mut Tally<'_>) -> Result<(), E>,
    ) -> Usage<E> {
        let mut matched = self.registry.matching_resources(hard, self.classes);
        let mut usage = Usage { used: ResourceList::new(), errors: Vec::new(), next_release: None };
        for evaluator in self.registry.iter() {
            let counted = evaluator.matching_resources(&matched, self.classes);
            if counted.is_empty() {
                continue;
            }
            // Another evaluator may report a name of the quota that it would not match alone.
            let mut tally = Tally::new(evaluator, &matched, self.scopes, self.now);
            match count(evaluator, &mut tally) {
                Ok(()) => {
                    usage.used += &tally.used;
                    usage.next_release = earlier(usage.next_release, tally.next_release);
                }
                Err(error) => {
                    matched = names::difference(&matched, &counted);
                    usage.errors.push(error);
                }
            }
        }
        usage.used = usage.used.mask(&matched);
        usage
    }
}

fn earlier(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    left.into_iter().chain(right).min()
}

// === impl Tally ===

impl<'a> Tally<'a> {
    /// Returns a tally of `names` that has counted nothing yet.
    pub fn new(
        evaluator: &'a Evaluator,
        names: &[ResourceName],
        scopes: &'a Scopes,
        now: Timestamp,
    ) -> Self {
        let used = names.iter().map(|name| (name.clone(), Quantity::ZERO)).collect();
        Self { evaluator, scopes, now, used, next_release: None }
    }

    /// Adds the charge of an object if the object is in all scopes of the quota.
    ///
    /// # Errors
    ///
    /// Returns an error if a scope cannot be evaluated. Upstream takes the partial sum for the
    /// usage.
    pub fn add(&mut self, charge: &Charge) -> Result<(), ScopeError> {
        if !self.scopes.matches(charge.scopes())? {
            return Ok(());
        }
        for part in charge.parts(self.now) {
            self.used.add_to_present(part);
        }
        if charge.until().is_some_and(|until| self.now <= until) {
            self.next_release = earlier(self.next_release, charge.until());
        }
        Ok(())
    }

    /// Adds `count` objects of a counter. They are in no scope, so a quota with scopes counts none
    /// of them.
    pub fn add_count(&mut self, count: usize) {
        if self.scopes.is_empty() {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let charge = self.evaluator.charge_of_count(count);
            charge.parts(self.now).for_each(|part| self.used.add_to_present(part));
        }
    }

    /// Returns the sums.
    pub fn used(&self) -> &ResourceList {
        &self.used
    }

    /// Returns the earliest end of a charge that was added.
    pub fn next_release(&self) -> Option<Timestamp> {
        self.next_release
    }
}
