//! What goes wrong between the informer and the server, by chance.

use std::time::Duration;

use homeostat_apiserver::{
    ApiServer, Backup,
    faults::{Break, Calls, Chaos, Class, Cut, Faults, HeldWatches, Lost, Partition, Refusal},
};

use super::dice::Dice;

/// Breaks the informer's requests and watches until it is ended.
pub(super) struct Troubles {
    server: ApiServer,
    faults: Faults,
    dice: Dice,
    /// What the server was like once, to be set back to that in the end.
    backup: Option<Backup>,
    held: Option<HeldWatches>,
    partition: Option<Partition>,
}

// === impl Troubles ===

impl Troubles {
    pub(super) fn new(server: &ApiServer, mut dice: Dice) -> Self {
        let faults = server.faults();
        let rate = dice.pick(&[0.0, 0.05, 0.2, 0.5]);
        let chaos = Chaos::of(rate).with(Class::WatchStalled, rate / 10.0);
        faults.chaos(Calls::any().by("informer"), chaos);
        Self { server: server.clone(), faults, dice, backup: None, held: None, partition: None }
    }

    /// One more thing goes wrong, or is well again.
    pub(super) fn step(&mut self) {
        self.partition = None;
        let watches = || Calls::watches().by("informer");
        match self.dice.below(18) {
            0 | 1 => drop(self.faults.end_watches(watches())),
            2 => drop(self.faults.expire_watches(watches())),
            3 => drop(self.faults.refuse_watches(watches(), &Refusal::internal_error())),
            4 => drop(self.faults.inject_line(watches(), "{\"type\":\"MODIFIED\",\"object\":{")),
            5 => drop(self.faults.inject_line(watches(), "")),
            6 => self.held = Some(self.faults.hold_watches(watches())),
            7 | 8 => self.held = None,
            9 => {
                let lost = self.dice.pick(&[Lost::Requests, Lost::Replies]);
                self.partition = Some(self.faults.partition("informer", lost));
            }
            10 | 11 => drop(self.faults.tear_watches(watches())),
            12 => self.server.compact(),
            13 if self.dice.one_in(2) => self.server.restart(),
            13 => self.server.restart_slowly(Duration::from_secs(3)),
            14 if self.dice.one_in(8) => self.backup = Some(self.server.backup()),
            14 => self.server.bookmark_watches(),
            _ => self.spoil(),
        }
    }

    /// The next list, or the next watch, is cut or wrong at some byte.
    fn spoil(&mut self) {
        let (lists, watches) = (Calls::list("configmaps"), Calls::watch("configmaps"));
        let byte = self.dice.below(1500);
        match self.dice.below(5) {
            0 => self.faults.truncate_reply(lists.by("informer"), byte),
            1 => self.faults.corrupt_reply(lists.by("informer"), byte),
            2 => self.faults.corrupt_watches(watches.by("informer"), byte),
            _ => {
                let how = self.dice.pick(&[Break::Reset, Break::End, Break::Stall]);
                self.faults.break_watches(watches.by("informer"), Cut::Bytes(byte), how);
            }
        }
    }

    /// Nothing goes wrong any more. Says whether, just before, the server was set back: then versions go back, too.
    pub(super) fn end(self) -> bool {
        self.faults.heal();
        if let Some(backup) = &self.backup {
            self.server.restore(backup);
        }
        self.backup.is_some()
    }
}
