//! Random faults between an informer and the embedded server.

use std::time::Duration;

use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::{ApiServer, Backup, Duplex, Listener};
use homeostat_faults::{
    ApiError, Break, Calls, Chaos, Cut, FaultClass, Faults, HeldWatches, Lost, Partition,
};

use super::dice::Dice;
use super::informer_client::informer_client;
use super::proxy::Proxy;
use super::{Convergence, Wire};

/// The embedded server. Breaks the informer's requests and watches until it ends.
pub(super) struct Embedded {
    server: ApiServer,
    faults: Faults,
    line: Line,
    dice: Dice,
    /// `true` excludes faults that cause a relist, because a relist would repair lost events.
    gentle: bool,
    /// A backup of the server, to be restored at the end.
    backup: Option<Backup>,
    held: Option<HeldWatches>,
    partition: Option<Partition>,
}

/// The connection of the informer.
enum Line {
    InProcess,
    Pipe(Duplex),
    /// The listener is kept for its `Drop`.
    Socket(Proxy, #[expect(dead_code, reason = "dropping it closes it")] Listener),
}

// === impl Embedded ===

impl Embedded {
    pub(super) async fn start(run: Convergence, mut dice: Dice) -> anyhow::Result<Self> {
        let server = ApiServer::builder().seed(run.seed).build();
        let line = match run.wire {
            Wire::Pipe => {
                let capacity = dice.pick(&[11, 70, 500, 65_536, 65_536]);
                Line::Pipe(server.duplex().capacity(capacity))
            }
            Wire::Socket => {
                let listener = server.listen(([127, 0, 0, 1], 0).into()).await?;
                Line::Socket(Proxy::start(listener.addr()).await?, listener)
            }
            Wire::InProcess | Wire::ControlPlane => Line::InProcess,
        };
        let faults = server.faults();
        let gentle = dice.one_in(4);
        let longest = Duration::from_millis(if line.is_real() { 50 } else { 2000 });
        let chaos = chaos(gentle, &mut dice).max_delay(longest);
        faults.chaos(Calls::any().by("informer"), chaos);
        Ok(Self { server, faults, line, dice, gentle, backup: None, held: None, partition: None })
    }

    pub(super) fn user(&self) -> Client {
        self.server.client_as("user")
    }

    pub(super) fn informer(&self) -> anyhow::Result<Client> {
        match &self.line {
            Line::InProcess => Ok(self.server.client_as("informer")),
            Line::Pipe(pipe) => Ok(pipe.client_as("informer")),
            Line::Socket(proxy, _) => {
                informer_client(Config::new(format!("http://{}", proxy.address()).parse()?))
            }
        }
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Injects or heals one fault.
    pub(super) fn step(&mut self) {
        self.partition = None;
        if let Line::Socket(proxy, _) = &self.line {
            proxy.open();
            if self.dice.one_in(3) {
                self.break_connections();
                return;
            }
        }
        let watches = || Calls::watches().by("informer");
        let warm_up = Duration::from_millis(if self.line.is_real() { 100 } else { 3000 });
        // Faults from 11 on make history unavailable.
        match self.dice.below(if self.gentle { 12 } else { 18 }) {
            2 | 3 if self.gentle => drop(self.faults.tear_watches(watches())),
            7..10 if self.gentle => self.corrupt_watch(),
            0 | 1 => drop(self.faults.end_watches(watches())),
            2 => drop(self.faults.expire_watches(watches())),
            3 => drop(self.faults.fail_watches(watches(), &ApiError::internal_error())),
            4 => drop(self.faults.inject_line(watches(), "{\"type\":\"MODIFIED\",\"object\":{")),
            5 => drop(self.faults.inject_line(watches(), "")),
            6 => self.held = Some(self.faults.hold_watches(watches())),
            7 | 8 => self.held = None,
            9 => {
                let lost = self.dice.pick(&[Lost::Requests, Lost::Replies]);
                self.partition = Some(self.faults.partition("informer", lost));
            }
            10 | 11 => drop(self.faults.tear_watches(watches())),
            12 => self.server.expire_history(),
            13 if self.dice.one_in(2) => self.server.restart(),
            13 => self.server.restart_slowly(warm_up),
            // A fault that is noticed only after a long silence is not tested in real time.
            14 if !self.line.is_real() && self.dice.one_in(8) => {
                self.backup = Some(self.server.backup());
            }
            14 => self.server.bookmark_watches(),
            _ => self.spoil(),
        }
    }

    fn break_connections(&mut self) {
        let Line::Socket(proxy, _) = &self.line else { return };
        match self.dice.below(4) {
            0 => {
                proxy.cut();
                self.faults.note("informer: connections cut");
            }
            1 => {
                proxy.close();
                self.faults.note("informer: no connections for a while");
            }
            _ => {
                proxy.cut_after(self.dice.pick(&[0, 10, 100, 300, 1000, 3000]));
                self.faults.note("informer: connections cut after some bytes");
            }
        }
    }

    /// Cuts or corrupts the next list or watch at some byte.
    fn spoil(&mut self) {
        let (lists, watches) = (Calls::list("configmaps"), Calls::watch("configmaps"));
        let byte = self.dice.below(1500);
        match self.dice.below(5) {
            0 => drop(self.faults.truncate_reply(lists.by("informer"), byte)),
            1 => drop(self.faults.corrupt_reply(lists.by("informer"), byte)),
            2 => self.corrupt_watch(),
            _ => {
                let how = self.dice.pick(&[Break::Reset, Break::End, Break::Stall]);
                self.faults.break_watches(watches.by("informer"), Cut::Bytes(byte), how);
            }
        }
    }

    /// Corrupts a byte of the next watch.
    fn corrupt_watch(&mut self) {
        let watches = Calls::watch("configmaps").by("informer");
        self.faults.corrupt_watches(watches, self.dice.below(1500));
    }

    /// Ends all faults. Returns `true` if the server was restored just before, so that versions go
    /// back.
    ///
    /// In real time, faults that would be noticed only after minutes, such as a stalled watch, end
    /// with their connection.
    pub(super) fn end(&mut self) -> bool {
        self.faults.heal();
        (self.held, self.partition) = (None, None);
        if let Some(backup) = &self.backup {
            self.server.restore(backup);
        }
        if let Line::Socket(proxy, _) = &self.line {
            proxy.open();
            proxy.cut();
        }
        self.backup.is_some()
    }
}

/// Returns the random faults; a gentle server has more faults of its watches.
fn chaos(gentle: bool, dice: &mut Dice) -> Chaos {
    if gentle {
        let torn = [
            FaultClass::WatchTorn,
            FaultClass::WatchEnded,
            FaultClass::WatchDelayed,
            FaultClass::WatchRewound,
        ];
        let chaos =
            Chaos::of(0.0).with(FaultClass::WatchCorrupted, 0.4).with(FaultClass::RequestLost, 0.1);
        return torn.into_iter().fold(chaos, |chaos, class| chaos.with(class, 0.1));
    }
    let rate = dice.pick(&[0.0, 0.05, 0.2, 0.5]);
    Chaos::of(rate).with(FaultClass::WatchStalled, rate / 10.0)
}

// === impl Line ===

impl Line {
    fn is_real(&self) -> bool {
        matches!(self, Self::Socket(..))
    }
}
