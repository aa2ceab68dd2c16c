//! Admission webhooks: the same cases on the embedded server and on a real kube-apiserver.
//!
//! A webhook server with TLS runs in this process. Each case configures webhooks, sends requests, and
//! writes down the replies and the reviews that the webhooks got. The texts in `tests/webhooks/*.txt`
//! are those of the real server: `HOMEOSTAT_RECORD=webhooks` writes them again.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

mod cases;
mod hooks;
mod play;

use std::path::{Path, PathBuf};

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use kube_client::Client;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use self::cases::Case;
use self::hooks::Hooks;

fn main() {
    let arguments = Arguments::from_args();
    let cases = cases::all();
    let names: Vec<&'static str> = cases.iter().map(|case| case.name).collect();
    let mut trials = Vec::new();
    for name in names {
        trials.push(Trial::test(format!("embedded::{name}"), move || embedded(name)));
    }
    trials.push(Trial::ignorable_test("control_plane", on_control_plane));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Plays a case on the embedded server, and compares it with the recording.
fn embedded(name: &str) -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        let case = cases::all().into_iter().find(|case| case.name == name).unwrap();
        let server = ApiServer::new();
        let hooks = Hooks::start().await;
        compare(&case, &play::play(&case, &server.client(), &hooks).await)
    })
}

/// Plays all cases on a real server, and compares or records them.
fn on_control_plane() -> Result<Completion, Failed> {
    if let Some(missing) = Binaries::missing_for_tests() {
        return Ok(Completion::ignored_with(missing));
    }
    let records = std::env::var("HOMEOSTAT_RECORD").is_ok_and(|what| what == "webhooks");
    let only = std::env::var("HOMEOSTAT_CASE").unwrap_or_default();
    Runtime::new()?.block_on(async {
        let control_plane = ControlPlane::start().await?;
        let client = Client::try_from(control_plane.config())?;
        let hooks = Hooks::start().await;
        let mut failed = Vec::new();
        for case in cases::all().iter().filter(|case| case.name.contains(&only)) {
            let played = play::play(case, &client, &hooks).await;
            if records {
                std::fs::write(recording(case), &played)?;
            } else if let Err(difference) = compare(case, &played) {
                failed.push(format!("{}: {difference:?}", case.name));
            }
        }
        if failed.is_empty() { Ok(Completion::Completed) } else { Err(failed.join("\n").into()) }
    })
}

fn recording(case: &Case) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/webhooks/{}.txt", case.name))
}

fn compare(case: &Case, played: &str) -> Result<(), Failed> {
    let file = recording(case);
    let recorded = std::fs::read_to_string(&file)
        .map_err(|error| format!("{}: {error}: record it first", file.display()))?;
    if recorded == played {
        return Ok(());
    }
    let actual = std::env::temp_dir().join(format!("homeostat-webhooks-{}.txt", case.name));
    std::fs::write(&actual, played)?;
    let lines = recorded.lines().zip(played.lines()).enumerate();
    let first = lines.into_iter().find(|(_, (wanted, found))| wanted != found);
    Err(match first {
        Some((at, (wanted, found))) => format!(
            "line {} of {} differs from {}:\nwanted {wanted}\nfound  {found}",
            at + 1,
            file.display(),
            actual.display()
        )
        .into(),
        None => format!("{} and {} have other lengths", file.display(), actual.display()).into(),
    })
}
