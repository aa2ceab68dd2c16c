//! Priorities, ageing and turns.
//!
//! ```text
//!  levels, by priority      flows, taking turns      slots, first in first out
//!     0    ──────────────▶  team-a ───────────────▶  7 → 3 → 12
//!                           team-b ───────────────▶  9
//!  -100    ──────────────▶  team-a ───────────────▶  1 → 2 → 5 → …
//!
//!  ages: 1 → 2 → 7 → 5 → 9 → 3 → …   (all slots, longest queued first)
//! ```
//!
//! Each queued slot is in one flow and in the list of ages. Both are linked lists, so that a slot
//! that is taken by its age or moves to a higher priority leaves the middle of a list without a
//! search. A held slot is in no list.
//!
//! Without turns each level has one flow, which holds all slots of its priority. The cost of a
//! hand-out does not depend on the number of slots: `O(log p)` for `p` levels. Memory follows the
//! largest number of slots since the last [`fresh`](super::Order::fresh).
//!
//! **Ageing.** Each `oldest_every`-th hand-out takes the head of the list of ages instead of the
//! head of the highest level. With `p` slots queued before it, a slot therefore waits for at most
//! `oldest_every · (p + 1)` hand-outs, whatever is queued after it.
//!
//! **Turns.** A flow that is served goes to the end of its level. A flow that becomes empty loses
//! its turn, and a group that queues again is last. This is round robin by item, not by time: a
//! group whose items take longer gets more of the workers' time.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::list::{Links, List};
use super::{Rank, Ranking};

/// The queued slots, each once, by priority, turn and age.
///
/// The queue's lock protects it. A slot is in exactly one flow and in `ages`, or in neither.
pub(crate) struct Ranked {
    ranking: Ranking,
    /// The data of each slot, by number; stale for vacant slots.
    slots: Vec<Slot>,
    /// The links of queued slots in their flows.
    in_flow: Vec<Links>,
    /// The links of queued slots in the list of ages.
    in_ages: Vec<Links>,
    /// All queued slots, longest queued first.
    ages: List,
    /// The number of queued slots.
    len: usize,
    /// The flows of each priority, next turn first; no level is empty.
    levels: BTreeMap<i32, List>,
    /// Flows by number. A flow in use is in its level and has at least one slot.
    flows: Vec<Flow>,
    /// The links of flows in their levels, by flow number.
    in_level: Vec<Links>,
    /// The numbers of the flows that are not in use, each once.
    vacant_flows: Vec<u32>,
    /// Maps a rank to its flow, for each flow in use; empty without turns.
    by_rank: HashTable<u32>,
    /// The number of hand-outs until the next one by age, including that one; at least 1.
    until_oldest: u32,
}

/// The data of a slot. It outlives the hand-out, so that a held slot remembers its priority.
struct Slot {
    /// The rank at which it is queued or was taken.
    rank: Rank,
    /// The highest priority requested since it was taken.
    wanted: Option<i32>,
    /// The flow in which it is queued; stale while it is held.
    flow: u32,
}

/// The queued slots of one rank. It exists only while it has a slot: the last slot that leaves it
/// removes it, and the group loses its turn.
struct Flow {
    rank: Rank,
    /// First in, first out; linked by `in_flow`.
    slots: List,
}

// === impl Ranked ===

impl Ranked {
    /// Creates an empty order. Without ageing, `until_oldest` stays 1 and is never read.
    pub(super) fn new(ranking: Ranking) -> Self {
        Self {
            ranking,
            slots: Vec::new(),
            in_flow: Vec::new(),
            in_ages: Vec::new(),
            ages: List::EMPTY,
            len: 0,
            levels: BTreeMap::new(),
            flows: Vec::new(),
            in_level: Vec::new(),
            vacant_flows: Vec::new(),
            by_rank: HashTable::new(),
            until_oldest: ranking.oldest_every.map_or(1, Into::into),
        }
    }

    /// Returns the options, for [`fresh`](super::Order::fresh).
    pub(super) fn ranking(&self) -> Ranking {
        self.ranking
    }

    /// Returns the number of queued slots, in constant time.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the rank at which a slot is queued or was taken. The slot must have been pushed
    /// once.
    pub(super) fn rank(&self, slot: u32) -> Rank {
        self.slots[slot as usize].rank
    }

    pub(super) fn priority(&self, slot: u32) -> i32 {
        self.rank(slot).priority
    }

    /// Returns the slot that [`take_first`](Self::take_first) takes: the oldest if it is due,
    /// otherwise the first slot of the next flow of the highest level.
    pub(super) fn first(&self) -> Option<u32> {
        if self.ranking.oldest_every.is_some() && self.until_oldest == 1 {
            return self.ages.first();
        }
        let (_, level) = self.levels.last_key_value()?;
        self.flows[level.first()? as usize].slots.first()
    }

    /// Takes out the first slot and counts the hand-out. The flow of the slot goes to the end of
    /// its level.
    pub(super) fn take_first(&mut self) -> Option<u32> {
        let slot = self.first()?;
        if let Some(every) = self.ranking.oldest_every {
            self.until_oldest =
                if self.until_oldest == 1 { every.get() } else { self.until_oldest - 1 };
        }
        self.leave_flow(slot, true);
        self.ages.remove(&mut self.in_ages, slot);
        self.len -= 1;
        Some(slot)
    }

    /// Queues a slot that holds a new item; the slot's earlier data is overwritten.
    pub(super) fn push(&mut self, slot: u32, rank: Rank) {
        let number = slot as usize;
        if number >= self.slots.len() {
            self.slots.resize_with(number + 1, || Slot::UNUSED);
            self.in_flow.resize(number + 1, Links::UNUSED);
            self.in_ages.resize(number + 1, Links::UNUSED);
        }
        self.slots[number] = Slot { rank, ..Slot::UNUSED };
        self.join(slot);
    }

    /// Queues a held slot at the priority that was requested for it, if any. An unfinished slot
    /// does not lose priority.
    pub(super) fn push_again(&mut self, slot: u32, unfinished: bool) {
        let known = &mut self.slots[slot as usize];
        let had = unfinished.then_some(known.rank.priority);
        if let Some(priority) = known.wanted.take().max(had) {
            known.rank.priority = priority;
        }
        self.join(slot);
    }

    /// Requests a held slot at this priority. The highest of several requests counts. Returns the
    /// previous request if this one is higher.
    pub(super) fn want(&mut self, slot: u32, priority: i32) -> Option<i32> {
        let known = &mut self.slots[slot as usize];
        let before = known.wanted;
        known.wanted = before.max(Some(priority));
        before.filter(|&before| before < priority)
    }

    /// Returns the highest priority requested since the slot was taken, or the priority at which it
    /// was taken.
    pub(super) fn wanted(&self, slot: u32) -> i32 {
        let known = &self.slots[slot as usize];
        known.wanted.unwrap_or(known.rank.priority)
    }

    /// Moves a queued slot to a higher priority. It keeps its place in the list of ages.
    ///
    /// It goes to the end of its new flow, behind slots that were queued there earlier. Returns the
    /// previous priority, or `None` if the slot is already at this priority or above it.
    pub(super) fn raise(&mut self, slot: u32, priority: i32) -> Option<i32> {
        let had = self.priority(slot);
        if priority <= had {
            return None;
        }
        self.leave_flow(slot, false);
        self.slots[slot as usize].rank.priority = priority;
        self.join_flow(slot);
        Some(had)
    }

    /// Returns the largest number of slots, flows or levels for which memory is allocated.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.slots.len().max(self.flows.len()).max(self.levels.len())
    }

    /// Queues a slot at its rank, at the end of the list of ages.
    fn join(&mut self, slot: u32) {
        self.join_flow(slot);
        self.ages.push(&mut self.in_ages, slot);
        self.len += 1;
    }

    /// Appends a slot to the flow of its rank.
    ///
    /// Creates the flow, and its level, if it is the first slot of its rank.
    fn join_flow(&mut self, slot: u32) {
        let rank = self.slots[slot as usize].rank;
        let flow = self.find_flow(rank).unwrap_or_else(|| self.add_flow(rank));
        self.slots[slot as usize].flow = flow;
        self.flows[flow as usize].slots.push(&mut self.in_flow, slot);
    }

    /// Removes a slot from its flow. If the slot is `served`, the flow goes to the end of its
    /// level.
    fn leave_flow(&mut self, slot: u32, served: bool) {
        let number = self.slots[slot as usize].flow;
        let flow = &mut self.flows[number as usize];
        flow.slots.remove(&mut self.in_flow, slot);
        if flow.slots.is_empty() {
            self.remove_flow(number);
        } else if served && self.ranking.fair {
            let level = self.levels.get_mut(&flow.rank.priority).expect("a flow is in its level");
            level.move_to_end(&mut self.in_level, number);
        }
    }

    /// Returns the flow in use for a rank; without turns, the only flow of its priority.
    fn find_flow(&self, rank: Rank) -> Option<u32> {
        if self.ranking.fair {
            let is_it = |&number: &u32| self.flows[number as usize].rank == rank;
            return self.by_rank.find(rank.hash(), is_it).copied();
        }
        self.levels.get(&rank.priority)?.first()
    }

    /// Adds a flow; its turn comes after those of the existing flows.
    fn add_flow(&mut self, rank: Rank) -> u32 {
        let flow = Flow { rank, slots: List::EMPTY };
        let number = if let Some(number) = self.vacant_flows.pop() {
            self.flows[number as usize] = flow;
            number
        } else {
            let number = u32::try_from(self.flows.len()).expect("each has a slot");
            self.flows.push(flow);
            self.in_level.push(Links::UNUSED);
            number
        };
        if self.ranking.fair {
            let flows = &self.flows;
            let hash = |&other: &u32| flows[other as usize].rank.hash();
            self.by_rank.insert_unique(rank.hash(), number, hash);
        }
        let level = self.levels.entry(rank.priority).or_insert(List::EMPTY);
        level.push(&mut self.in_level, number);
        number
    }

    /// Removes a flow without slots, and its level if that is empty then.
    fn remove_flow(&mut self, number: u32) {
        let rank = self.flows[number as usize].rank;
        if self.ranking.fair
            && let Ok(entry) = self.by_rank.find_entry(rank.hash(), |&other| other == number)
        {
            entry.remove();
        }
        let level = self.levels.get_mut(&rank.priority).expect("a flow is in its level");
        level.remove(&mut self.in_level, number);
        if level.is_empty() {
            self.levels.remove(&rank.priority);
        }
        self.vacant_flows.push(number);
    }
}

// === impl Slot ===

impl Slot {
    const UNUSED: Self =
        Self { rank: Rank { priority: 0, dimension: 0 }, wanted: None, flow: u32::MAX };
}

// === impl Rank ===

impl Rank {
    /// Mixes the priority into the dimension, which is a hash already.
    ///
    /// Two ranks with the same dimension and different priorities are different flows. The
    /// multiplication spreads small priorities over all bits.
    fn hash(self) -> u64 {
        let priority = u64::from(self.priority.cast_unsigned());
        self.dimension ^ priority.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
