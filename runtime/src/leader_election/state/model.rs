//! Many candidates in simulated time: clocks of different rates, slow and lost requests and
//! answers, partitions, pauses and kills. At no time do two of them lead.

use std::collections::BTreeMap;

use homeostat_core::Random;

use super::*;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// Length of one run, in microseconds of true time.
const END: u64 = 180_000_000;

/// After this moment no new fault begins, and the rest of the run shows recovery.
const CALM: u64 = 120_000_000;

/// The longest time to a new leader once the network is calm: the lease, two retries with their
/// jitter, and the requests, on the slowest clock.
const RECOVERY: u64 = (15 + 2 * 5 + 1) * 1_000_000 * 5 / 4;

/// The rule for the end of leadership.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    /// The start of the last successful request plus the renew deadline.
    Ours,
    /// Its answer, plus the pause before the next attempt, plus the renew deadline of that attempt.
    Upstream,
}

#[derive(Debug)]
enum Happening {
    Wake {
        request: u64,
    },
    /// The server carries out `step`, also if its sender no longer waits for it.
    Commit {
        request: u64,
        step: Step,
    },
    Answer {
        request: u64,
        answer: Answer,
    },
    Timeout {
        request: u64,
    },
    Kill,
}

#[derive(Debug, Clone)]
enum Answer {
    Lease(Option<Stored>),
    Write(Written),
}

struct Process {
    candidate: Candidate,
    /// Microseconds of its clock per second of true time, in parts per million.
    rate: u64,
    /// The number of its request under way, or of its wait; older happenings are void.
    current: u64,
    started: u64,
    pending: Option<Step>,
    paused_until: u64,
    partitioned_until: u64,
    alive: bool,
    /// Leadership in true time: from, until.
    led: Vec<(u64, u64)>,
}

struct World {
    rule: Rule,
    random: Random,
    now: u64,
    order: u64,
    agenda: BTreeMap<(u64, u64), (usize, Happening)>,
    lease: Option<Stored>,
    revision: u64,
    processes: Vec<Process>,
    requests: u64,
    acquisitions: u64,
}

// === impl Process ===

impl Process {
    fn local(&self, time: u64) -> Moment {
        Duration::from_micros(
            u64::try_from(u128::from(time) * u128::from(self.rate) / 1_000_000).unwrap(),
        )
    }

    /// The first microsecond of true time at which its clock shows `moment`.
    fn true_time(&self, moment: Moment) -> u64 {
        u64::try_from((moment.as_micros() * 1_000_000).div_ceil(u128::from(self.rate))).unwrap()
    }
}

// === impl World ===

impl World {
    fn new(seed: u64, rule: Rule) -> Self {
        let mut random = Random::new(Some(seed));
        let count = 2 + random.below(4);
        let processes = (0..count)
            .map(|number| Process {
                candidate: Candidate::new(format!("candidate-{number}"), TIMING),
                // 0.8 to 1.15: a ratio of 1.44 at most, less than lease duration / renew deadline.
                rate: 800_000 + random.below(350_000),
                current: 0,
                started: 0,
                pending: None,
                paused_until: 0,
                partitioned_until: 0,
                alive: true,
                led: Vec::new(),
            })
            .collect();
        Self {
            rule,
            random,
            now: 0,
            order: 0,
            agenda: BTreeMap::new(),
            lease: None,
            revision: 0,
            processes,
            requests: 0,
            acquisitions: 0,
        }
    }

    fn at(&mut self, time: u64, process: usize, happening: Happening) {
        self.order += 1;
        self.agenda.insert((time, self.order), (process, happening));
    }

    fn run(&mut self) {
        for number in 0..self.processes.len() {
            let start = self.random.below(5_000_000);
            self.at(start, number, Happening::Wake { request: 0 });
            if self.random.below(4) == 0 {
                let time = self.random.below(CALM);
                self.at(time, number, Happening::Kill);
            }
        }
        while let Some(((time, _), (number, happening))) = self.agenda.pop_first() {
            if time > END {
                break;
            }
            self.now = time;
            self.handle(number, happening);
        }
    }

    fn handle(&mut self, number: usize, happening: Happening) {
        let paused_until = self.processes[number].paused_until;
        let on_server = matches!(happening, Happening::Commit { .. } | Happening::Kill);
        if !on_server && paused_until > self.now {
            return self.at(paused_until, number, happening);
        }
        match happening {
            Happening::Kill => self.kill(number),
            Happening::Commit { request, step } => self.commit(number, request, step),
            _ if !self.processes[number].alive => {}
            Happening::Wake { request } if request == self.processes[number].current => {
                self.disturb(number);
                self.attempt(number);
            }
            Happening::Answer { request, answer } if request == self.processes[number].current => {
                self.answered(number, answer);
            }
            Happening::Timeout { request } if request == self.processes[number].current => {
                self.timed_out(number);
            }
            _ => {}
        }
    }

    /// A process that is gone writes no more: its leadership is over in truth.
    fn kill(&mut self, number: usize) {
        let others = self.processes.iter().filter(|process| process.alive).count();
        if others < 2 {
            return;
        }
        let now = self.now;
        let process = &mut self.processes[number];
        process.alive = false;
        if let Some((_, until)) = process.led.last_mut() {
            *until = (*until).min(now);
        }
    }

    fn disturb(&mut self, number: usize) {
        if self.now >= CALM {
            return;
        }
        let (pause, cut) = (self.random.below(40), self.random.below(20));
        let length = self.random.below(30_000_000);
        let until = (self.now + length).min(CALM);
        if pause == 0 {
            self.processes[number].paused_until = until;
        }
        if cut == 0 {
            self.processes[number].partitioned_until = until;
        }
    }

    fn attempt(&mut self, number: usize) {
        let (now, wall) = (self.now, self.wall());
        let process = &mut self.processes[number];
        let local = process.local(now);
        if process.candidate.valid_until().is_some() && !process.candidate.is_leader(local) {
            process.candidate.step_down();
        }
        let step = process.candidate.begin(local, wall);
        self.follow(number, step);
    }

    fn follow(&mut self, number: usize, step: Step) {
        match step {
            Step::Read | Step::Create(_) | Step::Replace { .. } => self.send(number, step),
            Step::Leading => {
                self.lead(number);
                self.wait(number, 2_000_000);
            }
            Step::Waiting => {
                let jitter = self.random.below(2_400_000);
                let leads = self.processes[number].candidate.valid_until().is_some();
                self.wait(number, 2_000_000 + if leads { 0 } else { jitter });
            }
            Step::Lost(_) => {
                let now = self.now;
                if let Some((_, until)) = self.processes[number].led.last_mut() {
                    *until = (*until).min(now);
                }
                self.wait(number, 2_000_000);
            }
        }
    }

    /// Notes the leadership that the candidate believes in from now on.
    fn lead(&mut self, number: usize) {
        let (now, rule) = (self.now, self.rule);
        let process = &mut self.processes[number];
        if rule == Rule::Upstream {
            let extra = TIMING.retry_period + TIMING.renew_deadline;
            process.candidate.valid_until = Some(process.local(now) + extra);
        }
        let until = process.true_time(process.candidate.valid_until().unwrap());
        match process.led.last_mut() {
            Some((_, last)) if *last >= now => *last = until,
            _ => {
                process.led.push((now, until));
                self.acquisitions += 1;
            }
        }
    }

    fn wait(&mut self, number: usize, local: u64) {
        let process = &mut self.processes[number];
        process.current += 1;
        let (request, rate) = (process.current, process.rate);
        self.at(self.now + local * 1_000_000 / rate, number, Happening::Wake { request });
    }

    fn send(&mut self, number: usize, step: Step) {
        self.requests += 1;
        let now = self.now;
        let process = &mut self.processes[number];
        process.current += 1;
        process.started = now;
        process.pending = Some(step.clone());
        let (request, timeout) = (process.current, 5_000_000 * 1_000_000 / process.rate);
        let cut = process.partitioned_until > now;
        self.at(now + timeout, number, Happening::Timeout { request });
        if !cut && !self.is_lost() {
            let delay = self.delay();
            self.at(now + delay, number, Happening::Commit { request, step });
        }
    }

    fn is_lost(&mut self) -> bool {
        self.now < CALM && self.random.below(20) == 0
    }

    /// Mostly milliseconds; while faults last, also seconds.
    fn delay(&mut self) -> u64 {
        match self.random.below(10) {
            0 if self.now < CALM => self.random.below(8_000_000),
            _ => 1_000 + self.random.below(50_000),
        }
    }

    fn commit(&mut self, number: usize, request: u64, step: Step) {
        let answer = match step {
            Step::Read => Answer::Lease(self.lease.clone()),
            Step::Create(record) => Answer::Write(self.store(record, None)),
            Step::Replace { record, version } => Answer::Write(self.store(record, Some(&version))),
            Step::Leading | Step::Waiting | Step::Lost(_) => return,
        };
        let cut = self.processes[number].partitioned_until > self.now;
        if !cut && !self.is_lost() {
            let delay = self.delay();
            self.at(self.now + delay, number, Happening::Answer { request, answer });
        }
    }

    fn store(&mut self, record: Record, expected: Option<&str>) -> Written {
        if self.lease.as_ref().map(|lease| lease.version.as_str()) != expected {
            return Written::Conflict;
        }
        self.revision += 1;
        let version = self.revision.to_string();
        self.lease = Some(Stored { record, version: version.clone() });
        Written::Stored(version)
    }

    fn answered(&mut self, number: usize, answer: Answer) {
        let (now, wall) = (self.now, self.wall());
        let process = &mut self.processes[number];
        let (local, started) = (process.local(now), process.local(process.started));
        let step = match answer {
            Answer::Lease(lease) => process.candidate.read(lease, local, wall),
            Answer::Write(outcome) => process.candidate.written(outcome, started, local),
        };
        self.follow(number, step);
    }

    fn timed_out(&mut self, number: usize) {
        let now = self.now;
        let process = &mut self.processes[number];
        let (local, started) = (process.local(now), process.local(process.started));
        let step = match process.pending.take() {
            Some(Step::Create(_) | Step::Replace { .. }) => {
                process.candidate.written(Written::Failed, started, local)
            }
            _ => Step::Waiting,
        };
        self.follow(number, step);
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_microsecond(i64::try_from(self.now).unwrap()).unwrap()
    }

    fn overlap(&self) -> Option<String> {
        let mut all: Vec<(u64, u64, usize)> = Vec::new();
        for (number, process) in self.processes.iter().enumerate() {
            all.extend(process.led.iter().map(|(from, until)| (*from, *until, number)));
        }
        all.sort_unstable();
        all.windows(2).find(|pair| pair[1].0 < pair[0].1 && pair[0].2 != pair[1].2).map(|pair| {
            format!("{:?} and {:?} (from, until, candidate; microseconds)", pair[0], pair[1])
        })
    }

    /// True time without a leader after the faults have ended.
    fn longest_gap_when_calm(&self) -> u64 {
        let mut all: Vec<(u64, u64)> =
            self.processes.iter().flat_map(|process| process.led.iter().copied()).collect();
        all.sort_unstable();
        let mut covered = CALM;
        let mut gap = 0;
        for (from, until) in all {
            gap = gap.max(from.min(END).saturating_sub(covered));
            covered = covered.max(until);
        }
        gap.max(END.saturating_sub(covered))
    }
}

fn seeds() -> u64 {
    std::env::var("HOMEOSTAT_ELECTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000)
}

#[test]
fn two_candidates_never_lead_at_once() {
    let (mut requests, mut acquisitions) = (0, 0);
    for seed in 0..seeds() {
        let mut world = World::new(seed, Rule::Ours);
        world.run();
        assert_eq!(world.overlap(), None, "seed {seed}");
        let gap = world.longest_gap_when_calm();
        assert!(gap <= RECOVERY, "seed {seed}: no leader for {gap} µs after the faults ended");
        requests += world.requests;
        acquisitions += world.acquisitions;
    }
    // Each run has dozens of requests, and leadership changes.
    assert!(requests > seeds() * 50, "{requests} requests");
    assert!(acquisitions > seeds() * 2, "{acquisitions} acquisitions");
}

#[test]
#[expect(clippy::print_stdout, reason = "the seed and the overlap are what the test shows")]
fn deadline_that_counts_from_the_answer_admits_two_leaders() {
    let overlapping = (0..2_000).find_map(|seed| {
        let mut world = World::new(seed, Rule::Upstream);
        world.run();
        world.overlap().map(|overlap| (seed, overlap))
    });
    let (seed, overlap) = overlapping.expect("client-go's rule lets two candidates lead at once");
    println!("client-go's rule, seed {seed}: {overlap}");
}
