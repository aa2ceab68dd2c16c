//! One test for each exchange and server. A script is played once per server, by the first test that asks.

use std::{
    env,
    fmt::Write,
    fs,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use futures::{StreamExt, stream};
use homeostat_apiserver::control_plane::{Binaries, ControlPlane};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime;

use crate::{
    differences::Differences,
    play::{Outcome, play},
    print::print_answer,
    script::{Exchange, Script, Stage},
    server::Server,
};

/// How many scripts are played on one real server at a time: each waits for watches more than it works.
const AT_A_TIME: usize = 8;

/// The outcomes of one script, one for each of its exchanges.
type Outcomes = Vec<Option<Outcome>>;

/// All scripts, and how they went.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) scripts: Vec<Script>,
    differences: Differences,
    embedded: Vec<OnceLock<Outcomes>>,
    /// Which scripts the real server is asked to play.
    wanted: Vec<bool>,
    real: OnceLock<Result<Vec<Outcomes>, String>>,
}

/// The folder of the scripts.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

/// All scripts, in the order of their names.
///
/// # Errors
///
/// A file cannot be read or is not understood.
pub(crate) fn scripts() -> Result<Vec<Script>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder()).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|kind| kind == "txt") && name != "differences" {
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
        let text = fs::read_to_string(folder().join("differences.txt"))
            .map_err(|error| error.to_string())?;
        let differences = Differences::parse(&text, &scripts)?;
        let filter = arguments.filter.as_deref().unwrap_or_default();
        let wanted = |script: &Script| {
            script.exchanges.iter().any(|exchange| real_name(script, exchange).contains(filter))
        };
        Ok(Self {
            differences,
            embedded: scripts.iter().map(|_| OnceLock::new()).collect(),
            wanted: scripts.iter().map(wanted).collect(),
            real: OnceLock::new(),
            scripts,
        })
    }

    /// The tests.
    pub(crate) fn trials(suite: &Arc<Self>) -> Vec<Trial> {
        let missing = Binaries::find().err();
        if let Some(missing) = &missing {
            let required = env::var_os("HOMEOSTAT_REQUIRE_CONTROL_PLANE").is_some();
            assert!(!required, "{missing}");
        }
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
            (Some(_), Err(_)) => Ok(()),
            (Some(reason), Ok(())) => Err(format!(
                "it is answered as recorded: take it out of differences.txt, where it says {reason:?}"
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

/// On a fresh server in this process, under a clock that waits for nobody.
pub(crate) fn play_embedded(script: &Script) -> Outcomes {
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(async { play(script, &mut Server::embedded()).await })
}

/// On one real server for all, but for the scripts that need their own.
pub(crate) fn play_real(scripts: &[Script], wanted: &[bool]) -> Result<Vec<Outcomes>, String> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let shared = ControlPlane::start().await.map_err(|error| error.to_string())?;
        let shared = &shared;
        let plays = scripts.iter().zip(wanted).map(|(script, wanted)| async move {
            if !wanted {
                return Ok(Outcomes::new());
            }
            let mut server =
                if script.own_server { Server::own().await } else { Server::shared(shared) }
                    .map_err(|error| error.to_string())?;
            Ok(play(script, &mut server).await)
        });
        let plays: Vec<_> = plays.collect();
        stream::iter(plays).buffered(AT_A_TIME).collect::<Vec<_>>().await.into_iter().collect()
    })
}

/// Whether the outcome is what has been recorded.
pub(crate) fn is_as_recorded(exchange: &Exchange, outcome: Option<&Outcome>) -> bool {
    exchange.stage == Stage::Compared && judge(exchange, outcome).is_ok()
}

/// Whether the outcome is what has been recorded; if not, how it differs.
fn judge(exchange: &Exchange, outcome: Option<&Outcome>) -> Result<(), String> {
    let recorded = exchange.answer.as_ref().ok_or("nothing is recorded yet")?;
    let answer = outcome.ok_or("it was not played")?.as_ref()?;
    if answer == recorded {
        return Ok(());
    }
    let (recorded, answer) = (print_answer(recorded), print_answer(answer));
    Err(format!("{} {}\n{}", exchange.method, exchange.path, difference(&recorded, &answer)))
}

/// The lines that only one of two texts has, the recorded one first.
fn difference(recorded: &str, answer: &str) -> String {
    let (recorded, answer): (Vec<_>, Vec<_>) =
        (recorded.lines().collect(), answer.lines().collect());
    let mut text = String::new();
    for (mark, lines, others) in
        [("recorded", &recorded, &answer), ("answered", &answer, &recorded)]
    {
        for line in lines.iter().filter(|line| !others.contains(line)) {
            let _ = writeln!(text, "  {mark}: {line}");
        }
    }
    text
}

/// A stage that was not set explains what fails after it.
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
