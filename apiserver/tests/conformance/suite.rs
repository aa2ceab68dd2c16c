//! One test per exchange and server. The first test of a script plays it on its server.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::{env, fs};

use futures::{StreamExt, stream};
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime;

use crate::differences::Differences;
use crate::pinned::Pinned;
use crate::play::{Alter, Outcome, play};
use crate::print::print_answer;
use crate::script::{Exchange, Script, Stage};
use crate::server::Server;

/// Number of scripts that are played on one real server concurrently: most of their time is waiting
/// for watches.
const AT_A_TIME: usize = 8;

/// The outcomes of one script, one per exchange.
type Outcomes = Vec<Option<Outcome>>;

/// All scripts and their outcomes.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) scripts: Vec<Script>,
    differences: Differences,
    pinned: Pinned,
    embedded: Vec<OnceLock<Outcomes>>,
    /// The scripts that are played on the real server.
    wanted: Vec<bool>,
    real: OnceLock<Result<Vec<Outcomes>, String>>,
}

/// Returns the directory of the scripts.
pub(crate) fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

/// Reads all scripts, in the order of their names.
///
/// # Errors
///
/// Returns an error if a file cannot be read or parsed.
pub(crate) fn scripts() -> Result<Vec<Script>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory()).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let is_script = !matches!(name.as_str(), "differences" | "pinned");
        if path.extension().is_some_and(|kind| kind == "txt") && is_script {
            let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
            files.push(Script::parse(&name, &text)?);
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

// === impl Suite ===

impl Suite {
    pub(crate) fn load(arguments: &Arguments) -> Result<Self, String> {
        let scripts = scripts()?;
        let differences = Differences::load(&scripts)?;
        let filter = arguments.filter.as_deref().unwrap_or_default();
        let wanted = |script: &Script| {
            script.exchanges.iter().any(|exchange| real_name(script, exchange).contains(filter))
        };
        Ok(Self {
            differences,
            pinned: Pinned::load()?,
            embedded: scripts.iter().map(|_| OnceLock::new()).collect(),
            wanted: scripts.iter().map(wanted).collect(),
            real: OnceLock::new(),
            scripts,
        })
    }

    /// Returns the tests.
    pub(crate) fn trials(suite: &Arc<Self>) -> Vec<Trial> {
        let missing = Binaries::missing_for_tests();
        let mut trials = Vec::new();
        for (at, script) in suite.scripts.iter().enumerate() {
            let compared = |(_, exchange): &(_, &Exchange)| exchange.stage == Stage::Compared;
            for (nth, exchange) in script.exchanges.iter().enumerate().filter(compared) {
                let name = format!("{} / {} (embedded, recorded)", script.name, exchange.title);
                let here = Arc::clone(suite);
                trials.push(Trial::test(name, move || here.on_embedded(at, nth)));
                let there = Arc::clone(suite);
                let real = Trial::test(real_name(script, exchange), move || there.on_real(at, nth));
                trials.push(real.with_ignored_flag(missing.is_some()));
            }
        }
        trials
    }

    fn on_embedded(&self, at: usize, nth: usize) -> Result<(), Failed> {
        let script = &self.scripts[at];
        let outcomes = self.embedded[at].get_or_init(|| play_embedded(script));
        let exchange = &script.exchanges[nth];
        let verdict = judge(exchange, outcomes[nth].as_ref());
        let name = format!("{} / {}", script.name, exchange.title);
        match (self.differences.reason(&name), verdict) {
            (None, verdict) => verdict.map_err(|why| outcomes_before(script, outcomes, nth) + &why),
            (Some(_), Err(_)) => self.pinned.check(&name, outcomes[nth].as_ref()),
            (Some(reason), Ok(())) => Err(format!(
                "the response is as recorded: remove the exchange from differences.txt ({reason:?})"
            )),
        }
        .map_err(Failed::from)
    }

    fn on_real(&self, at: usize, nth: usize) -> Result<(), Failed> {
        let played = self.real.get_or_init(|| play_real(&self.scripts, &self.wanted));
        let outcomes = &played.as_ref().map_err(Failed::from)?[at];
        let script = &self.scripts[at];
        judge(&script.exchanges[nth], outcomes[nth].as_ref())
            .map_err(|why| Failed::from(outcomes_before(script, outcomes, nth) + &why))
    }
}

fn real_name(script: &Script, exchange: &Exchange) -> String {
    format!("{} / {} (real kube-apiserver)", script.name, exchange.title)
}

/// Plays a script on a new server in this process, under a paused clock.
pub(crate) fn play_embedded(script: &Script) -> Outcomes {
    play_embedded_with(script, &mut |_, _, _| {})
}

/// Plays a script on a new server in this process; `alter` may change each unmasked response.
pub(crate) fn play_embedded_with(script: &Script, alter: Alter<'_>) -> Outcomes {
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(async {
        play(script, &mut Server::embedded(script.service_accounts), alter).await
    })
}

/// Plays the scripts on one real server; scripts with `@own server` get their own.
pub(crate) fn play_real(scripts: &[Script], wanted: &[bool]) -> Result<Vec<Outcomes>, String> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let shared = ControlPlane::start().await.map_err(|error| error.to_string())?;
        let shared = &shared;
        let plays = scripts.iter().zip(wanted).map(|(script, wanted)| async move {
            if !wanted {
                return Ok(Outcomes::new());
            }
            let server = if script.own_server {
                Server::own(script.service_accounts).await
            } else {
                Server::shared(shared)
            };
            let mut server = server?;
            Ok(play(script, &mut server, &mut |_, _, _| {}).await)
        });
        let plays: Vec<_> = plays.collect();
        stream::iter(plays).buffered(AT_A_TIME).collect::<Vec<_>>().await.into_iter().collect()
    })
}

/// Returns true if the outcome is as recorded.
pub(crate) fn is_as_recorded(exchange: &Exchange, outcome: Option<&Outcome>) -> bool {
    exchange.stage == Stage::Compared && judge(exchange, outcome).is_ok()
}

/// Compares the outcome with the recorded response. The error shows the difference.
fn judge(exchange: &Exchange, outcome: Option<&Outcome>) -> Result<(), String> {
    let recorded = exchange.answer.as_ref().ok_or("no response is recorded")?;
    let answer = outcome.ok_or("the exchange was not played")?.as_ref()?;
    if answer == recorded {
        return Ok(());
    }
    let (recorded, answer) = (print_answer(recorded), print_answer(answer));
    Err(format!("{} {}\n{}", exchange.method, exchange.path, difference(&recorded, &answer)))
}

/// Returns the lines that only one of the two texts has, the recorded one first.
fn difference(recorded: &str, answer: &str) -> String {
    let (recorded, answer): (Vec<_>, Vec<_>) =
        (recorded.lines().collect(), answer.lines().collect());
    let mut text = String::new();
    for (mark, lines, others) in
        [("recorded", &recorded, &answer), ("received", &answer, &recorded)]
    {
        for line in lines.iter().filter(|line| !others.contains(line)) {
            let _ = writeln!(text, "  {mark}: {line}");
        }
    }
    text
}

/// Describes failed setup exchanges, which explain later failures.
fn outcomes_before(script: &Script, outcomes: &Outcomes, nth: usize) -> String {
    let mut text = String::new();
    for (exchange, outcome) in script.exchanges.iter().zip(outcomes).take(nth) {
        let why = match outcome {
            Some(Ok(answer)) if exchange.stage != Stage::Compared && answer.status >= 300 => {
                print_answer(answer)
            }
            Some(Err(why)) => why.clone(),
            _ => continue,
        };
        let _ = writeln!(text, "before, at {:?}: {why}", exchange.title);
    }
    text
}
