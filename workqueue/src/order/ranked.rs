//! Priorities, ageing and fairness.
//!
//! ```text
//!  levels, by priority      flows, taking turns      slots, first come first served
//!     0    ──────────────▶  team-a ───────────────▶  7 → 3 → 12
//!                           team-b ───────────────▶  9
//!  -100    ──────────────▶  team-a ───────────────▶  1 → 2 → 5 → …
//!
//!  ages: 1 → 2 → 7 → 5 → 9 → 3 → …   (all of them, the one that was queued first first)
//! ```
//!
//! Each slot is in one flow and in the list of ages, both linked through the slots: a slot that is taken
//! by its age, or moves to a higher priority, leaves the middle of a list without a search, and nothing
//! has to be skipped later. A slot that is held is in no list.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::list::{Links, List};
use super::{Rank, Ranking};

/// The slots that are queued, each once.
pub(crate) struct Ranked {
    ranking: Ranking,
    /// What is known about each slot, by number; stale for one that is vacant.
    slots: Vec<Slot>,
    /// A queued slot's place in its flow.
    in_flow: Vec<Links>,
    /// A queued slot's place among the ages.
    in_ages: Vec<Links>,
    /// All queued slots, in the order in which they were queued.
    ages: List,
    /// How many slots are queued.
    len: usize,
    /// The flows that take turns at each priority; no level is empty.
    levels: BTreeMap<i32, List>,
    /// Flows by number. One that is in use is in its level and has a slot.
    flows: Vec<Flow>,
    in_level: Vec<Links>,
    vacant_flows: Vec<u32>,
    /// Rank → flow, for every flow in use; empty unless fair.
    by_rank: HashTable<u32>,
    /// So many hand-outs until the oldest has its turn; never 0.
    until_oldest: u32,
}

struct Slot {
    /// That of its item: queued there, or taken from there.
    rank: Rank,
    /// The highest priority at which it was asked for since it was taken.
    wanted: Option<i32>,
    /// Where it is queued; stale when it was taken.
    flow: u32,
}

struct Flow {
    rank: Rank,
    slots: List,
}

// === impl Ranked ===

impl Ranked {
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

    pub(super) fn ranking(&self) -> Ranking {
        self.ranking
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn priority(&self, slot: u32) -> i32 {
        self.slots[slot as usize].rank.priority
    }

    pub(super) fn first(&self) -> Option<u32> {
        if self.ranking.oldest_every.is_some() && self.until_oldest == 1 {
            return self.ages.first();
        }
        let (_, level) = self.levels.last_key_value()?;
        self.flows[level.first()? as usize].slots.first()
    }

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

    pub(super) fn push_again(&mut self, slot: u32, unfinished: bool) {
        let known = &mut self.slots[slot as usize];
        let had = unfinished.then_some(known.rank.priority);
        if let Some(priority) = known.wanted.take().max(had) {
            known.rank.priority = priority;
        }
        self.join(slot);
    }

    pub(super) fn want(&mut self, slot: u32, priority: i32) -> Option<i32> {
        let known = &mut self.slots[slot as usize];
        let before = known.wanted;
        known.wanted = before.max(Some(priority));
        before.filter(|&before| before < priority)
    }

    pub(super) fn wanted(&self, slot: u32) -> i32 {
        let known = &self.slots[slot as usize];
        known.wanted.unwrap_or(known.rank.priority)
    }

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

    /// For how many slots, flows and levels there is memory.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.slots.len().max(self.flows.len()).max(self.levels.len())
    }

    /// Queues a slot by its rank, as the youngest.
    fn join(&mut self, slot: u32) {
        self.join_flow(slot);
        self.ages.push(&mut self.in_ages, slot);
        self.len += 1;
    }

    /// Puts a slot at the end of the flow of its rank.
    fn join_flow(&mut self, slot: u32) {
        let rank = self.slots[slot as usize].rank;
        let flow = self.find_flow(rank).unwrap_or_else(|| self.add_flow(rank));
        self.slots[slot as usize].flow = flow;
        self.flows[flow as usize].slots.push(&mut self.in_flow, slot);
    }

    /// Takes a slot out of its flow, which has had its turn if the slot is `served`.
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

    fn find_flow(&self, rank: Rank) -> Option<u32> {
        if self.ranking.fair {
            let is_it = |&number: &u32| self.flows[number as usize].rank == rank;
            return self.by_rank.find(rank.hash(), is_it).copied();
        }
        self.levels.get(&rank.priority)?.first()
    }

    /// Makes a flow, whose turn comes after those of the flows that are there.
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

    /// Forgets a flow without slots, and its level if there is no other.
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
    /// The dimension is a hash already; this keeps its flows of several priorities apart.
    fn hash(self) -> u64 {
        let priority = u64::from(self.priority.cast_unsigned());
        self.dimension ^ priority.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
