//! Runs the tests of mutants.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::cargo::Executable;
use crate::weave::SWITCH;

/// Seconds after which a test does not end.
///
/// A lost wake-up shows as a test that never ends. Others may take long beside other work.
const PATIENCE: &str = "120";

/// Convergence runs of a test, as in `HOMEOSTAT_SEEDS`. Those of `.ci/run` take up to a minute, and
/// several where other work goes on.
const SEEDS: &str = "1000";

/// Bytes of the stack of a test. The frame of a function that has several bodies holds the
/// variables of all of them, so a test gets twice the default of 2 MiB.
const STACK: &str = "4194304";

/// The exit code of `timeout` for a program that it ended.
const TIMED_OUT: i32 = 124;

/// Settings of other steps that change which tests run, or how long they take.
///
/// A mutant breaks our code, so the embedded server catches it: a real one takes most of a test's
/// time to start.
const UNSET: [&str; 6] = [
    "HOMEOSTAT_CASES",
    "HOMEOSTAT_OPERATIONS",
    "HOMEOSTAT_REQUIRE_CONTROL_PLANE",
    "KUBEBUILDER_ASSETS",
    "TEST_ASSET_ETCD",
    "TEST_ASSET_KUBE_APISERVER",
];

/// The end of a run of a test program.
#[derive(Debug)]
pub struct Run {
    /// The outcome.
    pub outcome: Outcome,
    /// Time that it took.
    pub took: Duration,
    /// Its output.
    pub log: String,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A test failed.
    Failed,
    /// A test did not end.
    NeverEnded,
    /// All tests passed.
    Passed,
}

// === impl Outcome ===

/// Writes the outcome for a mutant.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Failed => "caught",
            Self::NeverEnded => "caught (never ends)",
            Self::Passed => "NOT CAUGHT",
        })
    }
}

// === functions ===

/// Runs the tests of `program` whose name contains `filter`, while `mutant` is active.
///
/// # Errors
///
/// Fails if the program cannot be started.
pub fn run(program: &Executable, filter: &str, mutant: Option<&str>) -> anyhow::Result<Run> {
    let start = Instant::now();
    let mut log = tempfile::tempfile()?;
    let status = command(program, filter, mutant, &log)?.status().context("timeout")?;
    log.seek(SeekFrom::Start(0))?;
    let mut printed = Vec::new();
    log.read_to_end(&mut printed)?;
    let log = String::from_utf8_lossy(&printed).into_owned();
    Ok(Run { outcome: outcome(status), took: start.elapsed(), log })
}

fn command(
    program: &Executable,
    filter: &str,
    mutant: Option<&str>,
    log: &File,
) -> anyhow::Result<Command> {
    let mut command = Command::new("timeout");
    command
        .arg(PATIENCE)
        .arg(&program.path)
        .arg(filter)
        .current_dir(&program.folder)
        .env("RUST_BACKTRACE", "0")
        .env("RUST_MIN_STACK", STACK)
        .env("HOMEOSTAT_SEEDS", SEEDS)
        .env("XDG_CACHE_HOME", "/nonexistent") // there the control plane would be
        .env_remove(SWITCH)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?);
    for variable in UNSET {
        command.env_remove(variable);
    }
    if let Some(name) = mutant {
        command.env(SWITCH, name);
    }
    Ok(command)
}

fn outcome(status: ExitStatus) -> Outcome {
    match status.code() {
        Some(0) => Outcome::Passed,
        Some(TIMED_OUT) => Outcome::NeverEnded,
        _ => Outcome::Failed,
    }
}
