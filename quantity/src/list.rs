//! Lists of quantities by name, and the operations of `k8s.io/apiserver/pkg/quota/v1/resources.go`.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

use crate::name::ResourceName;
use crate::parse::ParseQuantityError;
use crate::quantity::Quantity;

/// Quantities by resource name (`v1.ResourceList`), in the order of the names.
///
/// Equality has the meaning of `quota.Equals`: the same names, and numerically equal quantities.
///
/// # Examples
///
/// ```
/// use homeostat_quantity::ResourceList;
///
/// let hard = ResourceList::parse([("pods", "3"), ("requests.memory", "10Gi")])?;
/// let used = ResourceList::parse([("pods", "2"), ("requests.memory", "4Gi")])?;
/// let wanted = ResourceList::parse([("pods", "1"), ("requests.memory", "7Gi")])?;
///
/// let sum = used.add(&wanted);
/// assert_eq!(sum.to_string(), "pods=3,requests.memory=11Gi");
/// assert_eq!(sum.names_exceeding(&hard), ["requests.memory"]);
/// # Ok::<(), homeostat_quantity::ParseListError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ResourceList {
    /// Sorted by name, each name once.
    entries: Vec<(ResourceName, Quantity)>,
}

/// An entry of a list is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("quantity of resource {name}: {source}")]
pub struct ParseListError {
    /// The name of the entry.
    pub name: ResourceName,
    /// The reason.
    pub source: ParseQuantityError,
}

// === impl ResourceList ===

impl ResourceList {
    /// Returns an empty list.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Reads the quantities of a list. Of two entries with one name the last stays.
    ///
    /// # Errors
    ///
    /// Returns the first entry whose text is not a quantity.
    pub fn parse<N: Into<ResourceName>, T: AsRef<str>>(
        entries: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, ParseListError> {
        let read = |(name, text): (N, T)| {
            let name = name.into();
            match text.as_ref().parse() {
                Ok(quantity) => Ok((name, quantity)),
                Err(source) => Err(ParseListError { name, source }),
            }
        };
        entries.into_iter().map(read).collect()
    }

    /// Returns the quantity of `name`.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.position(name).ok().map(|at| &self.entries[at].1)
    }

    /// Returns true if the list has an entry for `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_ok()
    }

    /// Sets the quantity of `name` and returns the previous one.
    pub fn insert(
        &mut self,
        name: impl Into<ResourceName>,
        quantity: Quantity,
    ) -> Option<Quantity> {
        let name = name.into();
        match self.position(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, quantity)),
            Err(at) => {
                self.entries.insert(at, (name, quantity));
                None
            }
        }
    }

    /// Removes the entry of `name` and returns its quantity.
    pub fn remove(&mut self, name: &str) -> Option<Quantity> {
        self.position(name).ok().map(|at| self.entries.remove(at).1)
    }

    /// Adds `quantity` to the entry of `name`. An absent entry becomes a copy of `quantity`.
    pub fn add_to(&mut self, name: &ResourceName, quantity: &Quantity) {
        match self.position(name) {
            Ok(at) => self.entries[at].1 += quantity,
            Err(at) => self.entries.insert(at, (name.clone(), quantity.clone())),
        }
    }

    /// Adds the entries of `other` whose names this list has. Other names are left out.
    ///
    /// One pass over both lists, without an allocation: a recount sums thousands of lists into a
    /// few names.
    pub fn add_to_present(&mut self, other: &Self) {
        let mut rest = other.entries.iter().peekable();
        for (name, sum) in &mut self.entries {
            while rest.next_if(|(other, _)| other < name).is_some() {}
            if let Some((_, quantity)) = rest.next_if(|(other, _)| other == name) {
                *sum += quantity;
            }
        }
    }

    /// Keeps the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&ResourceName, &Quantity) -> bool) {
        self.entries.retain(|(name, quantity)| keep(name, quantity));
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the list has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries in the order of their names.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.entries.iter())
    }

    /// Returns the names in ascending order (`quota.ResourceNames`).
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &ResourceName> + ExactSizeIterator {
        self.entries.iter().map(|(name, _)| name)
    }

    /// Returns the sum for each name of either list (`quota.Add`).
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum += other;
        sum
    }

    /// Returns the difference for each name of either list (`quota.Subtract`). A missing entry
    /// counts as zero.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        self.merge(other, |left, right| match (left, right) {
            (Some(left), Some(right)) => left - right,
            (Some(left), None) => left.clone(),
            (None, right) => -right.cloned().unwrap_or_default(),
        })
    }

    /// Returns the difference, with `0` in place of each result below zero
    /// (`quota.SubtractWithNonNegativeResult`).
    #[must_use]
    pub fn subtract_with_non_negative_result(&self, other: &Self) -> Self {
        let mut difference = self.subtract(other);
        for (_, quantity) in &mut difference.entries {
            if !quantity.is_positive() {
                *quantity = Quantity::ZERO;
            }
        }
        // A name that only `other` has counts as zero, also where `other` is negative.
        for (name, quantity) in &mut difference.entries {
            if !self.contains(name) {
                *quantity = Quantity::ZERO;
            }
        }
        difference
    }

    /// Returns the larger quantity for each name of either list (`quota.Max`). Of equal ones
    /// `other`'s is taken.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.merge(other, |left, right| match (left, right) {
            (Some(left), Some(right)) if left > right => left.clone(),
            (left, right) => right.or(left).cloned().unwrap_or_default(),
        })
    }

    /// Returns the entries whose names are in `names` (`quota.Mask`).
    #[must_use]
    pub fn mask<'a>(&self, names: impl IntoIterator<Item = &'a ResourceName>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().map(Borrow::borrow).collect();
        let mut masked = self.clone();
        masked.retain(|name, _| names.contains(name.as_str()));
        masked
    }

    /// Returns the entries that are not zero (`quota.RemoveZeros`).
    #[must_use]
    pub fn remove_zeros(&self) -> Self {
        let mut rest = self.clone();
        rest.retain(|_, quantity| !quantity.is_zero());
        rest
    }

    /// Returns true if every entry is zero (`quota.IsZero`).
    pub fn is_zero(&self) -> bool {
        self.entries.iter().all(|(_, quantity)| quantity.is_zero())
    }

    /// Returns the names of the entries below zero (`quota.IsNegative`).
    pub fn negative_names(&self) -> Vec<ResourceName> {
        let negative = self.entries.iter().filter(|(_, quantity)| quantity.is_negative());
        negative.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the names whose quantity exceeds that of `limit` (the names of
    /// `quota.LessThanOrEqual`).
    ///
    /// A name that only one of the lists has is not compared.
    pub fn names_exceeding(&self, limit: &Self) -> Vec<ResourceName> {
        let exceeds = |(name, most): &(&ResourceName, &Quantity)| {
            self.get(name).is_some_and(|quantity| quantity > most)
        };
        limit.iter().filter(exceeds).map(|(name, _)| name.clone()).collect()
    }

    /// Returns true if no entry exceeds that of `limit` (`quota.LessThanOrEqual`).
    pub fn is_less_than_or_equal(&self, limit: &Self) -> bool {
        self.names_exceeding(limit).is_empty()
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// Joins the entries of two lists in the order of their names.
    fn merge(
        &self,
        other: &Self,
        mut join: impl FnMut(Option<&Quantity>, Option<&Quantity>) -> Quantity,
    ) -> Self {
        let mut entries = Vec::with_capacity(self.len().max(other.len()));
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        while let Some(name) = match (left.peek(), right.peek()) {
            (Some((name, _)), Some((other, _))) => Some((*name).min(*other)),
            (name, other) => name.or(other).map(|(name, _)| *name),
        } {
            let (of_left, of_right) =
                (left.next_if(|it| it.0 == name), right.next_if(|it| it.0 == name));
            entries.push((name.clone(), join(of_left.map(|it| it.1), of_right.map(|it| it.1))));
        }
        Self { entries }
    }
}

impl AddAssign<&Self> for ResourceList {
    /// Adds each entry of `other`, in one pass over both lists.
    fn add_assign(&mut self, other: &Self) {
        let mut at = 0;
        for (name, quantity) in &other.entries {
            while self.entries.get(at).is_some_and(|(known, _)| known < name) {
                at += 1;
            }
            match self.entries.get_mut(at) {
                Some((known, sum)) if known == name => *sum += quantity,
                _ => self.entries.insert(at, (name.clone(), quantity.clone())),
            }
        }
    }
}

impl<N: Into<ResourceName>> FromIterator<(N, Quantity)> for ResourceList {
    /// Collects entries. Of two entries with one name the last stays.
    fn from_iter<I: IntoIterator<Item = (N, Quantity)>>(entries: I) -> Self {
        let mut entries: Vec<_> =
            entries.into_iter().map(|(name, quantity)| (name.into(), quantity)).collect();
        entries.sort_by(|left: &(ResourceName, Quantity), right| left.0.cmp(&right.0));
        // The sort is stable and the first of two equal entries stays: swap, so that the last one
        // does.
        entries.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Self { entries }
    }
}

impl<N: Into<ResourceName>, const LEN: usize> From<[(N, Quantity); LEN]> for ResourceList {
    fn from(entries: [(N, Quantity); LEN]) -> Self {
        entries.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a ResourceList {
    type Item = (&'a ResourceName, &'a Quantity);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Writes `name=quantity` pairs in the order of their names, joined by commas.
impl fmt::Display for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, quantity)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={quantity}")?;
        }
        Ok(())
    }
}

/// The entries of a [`ResourceList`], in the order of their names.
#[derive(Debug, Clone)]
pub struct Iter<'a>(std::slice::Iter<'a, (ResourceName, Quantity)>);

// === impl Iter ===

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a ResourceName, &'a Quantity);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, quantity)| (name, quantity))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}
