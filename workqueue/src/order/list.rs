//! Doubly linked lists of slot numbers whose links are in a separate slice. Each operation takes
//! constant time and allocates nothing. Pure.
//!
//! A number is in at most one list per slice of links. The lists do not check this: their owner,
//! `Ranked`, relies on the state, which queues a slot at most once. The links of a number that is
//! in no list are stale.
//!
//! This is not `std::collections::LinkedList`, whose nodes cannot leave from the middle in constant
//! time, and which allocates each of them.

/// The neighbours of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    before: u32,
    behind: u32,
}

/// A list. The owner keeps the members' links in a slice and passes it to each call.
pub(super) struct List {
    first: u32,
    last: u32,
}

/// Marks the end of a list.
const NONE: u32 = u32::MAX;

// === impl Links ===

impl Links {
    /// The links of a number that is in no list.
    pub(super) const UNUSED: Self = Self { before: NONE, behind: NONE };
}

// === impl List ===

impl List {
    /// The list without members.
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Returns the first member, in constant time.
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Appends a number that is not in the list.
    pub(super) fn push(&mut self, links: &mut [Links], member: u32) {
        links[member as usize] = Links { before: self.last, behind: NONE };
        match self.last {
            NONE => self.first = member,
            last => links[last as usize].behind = member,
        }
        self.last = member;
    }

    /// Takes out a number that is in the list.
    pub(super) fn remove(&mut self, links: &mut [Links], member: u32) {
        let Links { before, behind } = links[member as usize];
        match before {
            NONE => self.first = behind,
            before => links[before as usize].behind = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => links[behind as usize].before = before,
        }
    }

    /// Moves a number that is in the list to its end.
    pub(super) fn move_to_end(&mut self, links: &mut [Links], member: u32) {
        if self.last != member {
            self.remove(links, member);
            self.push(links, member);
        }
    }
}
