//! kubectl prints the same for the embedded server as for a real kube-apiserver.
//!
//! `kubectl/*.txt` are what somebody types, in order: a line with a command, and what it reads from its standard input
//! behind `> `. `kubectl/differences.txt` lists the commands that print something else, and why. Both servers have the same neighbours: a kubelet, a garbage collector, a namespace controller.

mod normal;
mod script;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use tokio::{runtime::Runtime, time::Instant};

use self::{
    normal::{normal, sorted},
    script::{Step, parse},
};
use crate::{Programs, cluster::Cluster, with_programs};

const SCRIPTS: [(&str, &str); 5] = [
    ("kinds", include_str!("kubectl/kinds.txt")),
    ("writes", include_str!("kubectl/writes.txt")),
    ("deletes", include_str!("kubectl/deletes.txt")),
    ("looks", include_str!("kubectl/looks.txt")),
    ("mistakes", include_str!("kubectl/mistakes.txt")),
];

/// Commands that print something else, by script, with the reason behind `#`.
const DIFFERENCES: &str = include_str!("kubectl/differences.txt");

/// How long a command marked `eventually` may print something else.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        with_programs("kubectl prints the same as for a real kube-apiserver", |programs| {
            Runtime::new()?.block_on(async {
                let clusters = (Cluster::embedded().await?, Cluster::real().await?);
                let found: Vec<_> = SCRIPTS
                    .iter()
                    .flat_map(|(name, script)| compare(&programs, &clusters, name, script))
                    .collect();
                judge(&found)
            })
        }),
        with_programs("kubectl knows every kind of the embedded server", |programs| {
            Runtime::new()?.block_on(async {
                kinds(&programs, &(Cluster::embedded().await?, Cluster::real().await?))
            })
        }),
    ]
}

/// What was printed otherwise: which command of which script, and both answers.
struct Difference {
    title: String,
    answers: String,
}

/// Nothing may be different but what is listed, and what is listed must be.
fn judge(found: &[Difference]) -> Result<(), Failed> {
    let listed: BTreeSet<&str> =
        DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let new = found.iter().filter(|difference| !listed.contains(&*difference.title));
    let mut wrong: String = new.map(|difference| &*difference.answers).collect();
    for title in listed {
        if found.iter().all(|difference| difference.title != title) {
            writeln!(wrong, "\n=== the same on both; take it out of differences.txt: {title}")
                .unwrap();
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// Runs a script on both; what was different.
fn compare(
    programs: &Programs,
    (embedded, real): &(Cluster, Cluster),
    name: &str,
    script: &str,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut titles = BTreeSet::new();
    for step in parse(script) {
        let title = title(name, &step, &mut titles);
        let theirs = settled(&step, || answer(programs, real, &step));
        let started = Instant::now();
        let mut ours = answer(programs, embedded, &step);
        // A neighbour may be slower here than there: what it does last is what counts.
        while step.eventually && ours != theirs && started.elapsed() < PATIENCE {
            ours = answer(programs, embedded, &step);
        }
        if ours != theirs {
            let answers =
                format!("\n=== {title}\n--- kube-apiserver\n{theirs}\n--- embedded\n{ours}\n");
            differences.push(Difference { title, answers });
        }
    }
    differences
}

/// What a step is called; one that is typed again is told by its number.
fn title(name: &str, step: &Step<'_>, titles: &mut BTreeSet<String>) -> String {
    let title = format!("{name}: {}", step.command);
    let again = (2..).map(|n| format!("{title} #{n}"));
    let free = std::iter::once(title.clone()).chain(again).find(|title| !titles.contains(title));
    let free = free.unwrap_or(title);
    titles.insert(free.clone());
    free
}

/// An answer that stays the same for a moment, if the step says that it takes its time.
fn settled(step: &Step<'_>, mut answer: impl FnMut() -> String) -> String {
    let mut last = answer();
    let mut same = 0;
    while step.eventually && same < 5 {
        let next = answer();
        same = if next == last { same + 1 } else { 0 };
        last = next;
    }
    last
}

/// What the command prints, without what differs from run to run.
fn answer(programs: &Programs, cluster: &Cluster, step: &Step<'_>) -> String {
    let printed = kubectl(&programs.kubectl, &cluster.kubeconfig, step);
    let printed = normal(&printed);
    if step.sorted { sorted(&printed) } else { printed }
}

fn kubectl(program: &Path, kubeconfig: &Path, step: &Step<'_>) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", step.command]).env("KUBECONFIG", kubeconfig);
    command.env("PATH", path_with(program));
    // kubectl keeps what it has discovered of a server, by its address.
    command.env("KUBECACHEDIR", kubeconfig.with_extension("cache"));
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(step.input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let code = output.status.code().map_or_else(String::new, |code| format!("exit {code}\n"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}{code}", text(&output.stdout), text(&output.stderr))
}

fn path_with(program: &Path) -> std::ffi::OsString {
    let folder = program.parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// The embedded server has fewer kinds, but those it has are as they are on the real one.
fn kinds(programs: &Programs, (embedded, real): &(Cluster, Cluster)) -> Result<(), Failed> {
    for command in ["kubectl api-resources -o wide --no-headers", "kubectl api-versions"] {
        let step = Step { command, input: String::new(), eventually: false, sorted: false };
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = |cluster| -> BTreeSet<String> {
            kubectl(&programs.kubectl, cluster_config(cluster), &step).lines().map(words).collect()
        };
        let (ours, theirs) = (lines(embedded), lines(real));
        let wrong: Vec<_> = ours.difference(&theirs).collect();
        if !wrong.is_empty() || ours.len() < 8 {
            return Err(format!("{command}: not so on a real kube-apiserver: {wrong:#?}").into());
        }
    }
    Ok(())
}

fn cluster_config(cluster: &Cluster) -> &Path {
    &cluster.kubeconfig
}
