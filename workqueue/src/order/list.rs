//! Lists whose members are numbers and whose links lie beside what the numbers name: to join, to leave
//! from the middle and to move take the same few steps whatever the length, and no memory. Pure.

/// Who comes before and behind a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    before: u32,
    behind: u32,
}

/// A list; its members' links are in a slice of the owner's, which each call is given.
pub(super) struct List {
    first: u32,
    last: u32,
}

/// Nobody: the end of a list.
const NONE: u32 = u32::MAX;

// === impl Links ===

impl Links {
    /// Those of a number that is in no list.
    pub(super) const UNUSED: Self = Self { before: NONE, behind: NONE };
}

// === impl List ===

impl List {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE };

    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

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
