//! Compares the output of kubectl for the embedded server with its output for a real
//! kube-apiserver.
//!
//! `kubectl/*.txt` are scripts: a line with a command, its standard input after `> `, and after
//! `< ` the output that both servers must have. `kubectl/differences.txt` lists the commands with
//! different output, and the reasons. Both servers have a kubelet, a garbage collector and a
//! namespace controller.

mod normal;
mod script;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use self::normal::{normal, sorted};
use self::script::{Step, parse};
use crate::cluster::Cluster;
use crate::{Programs, with_programs};

const SCRIPTS: [(&str, &str); 9] = [
    ("access", include_str!("kubectl/access.txt")),
    ("kinds", include_str!("kubectl/kinds.txt")),
    ("writes", include_str!("kubectl/writes.txt")),
    ("deletes", include_str!("kubectl/deletes.txt")),
    ("looks", include_str!("kubectl/looks.txt")),
    ("mistakes", include_str!("kubectl/mistakes.txt")),
    ("imperative", include_str!("kubectl/imperative.txt")),
    ("custom", include_str!("kubectl/custom.txt")),
    ("foos", include_str!("kubectl/foos.txt")),
];

/// The commands with different output, by script, with the reason after `#`.
const DIFFERENCES: &str = include_str!("kubectl/differences.txt");

/// Time within which the output of a command marked `eventually` must be equal.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        with_programs("kubectl prints the same as for a real kube-apiserver", |programs| {
            Runtime::new()?.block_on(async {
                let clusters = (Cluster::embedded().await?, Cluster::real().await?);
                let found: Vec<_> = SCRIPTS
                    .iter()
                    .flat_map(|(name, script)| compare(&programs, &clusters, name, script))
                    .collect();
                check_differences(&found)
            })
        }),
        with_programs("kubectl knows every kind of the embedded server", |programs| {
            Runtime::new()?.block_on(async {
                kinds(&programs, &(Cluster::embedded().await?, Cluster::real().await?))
            })
        }),
    ]
}

/// A command with different output, and both outputs.
struct Difference {
    title: String,
    answers: String,
}

/// Checks that exactly the listed commands have different output.
fn check_differences(found: &[Difference]) -> Result<(), Failed> {
    let listed: BTreeSet<&str> =
        DIFFERENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let new = found.iter().filter(|difference| !listed.contains(&*difference.title));
    let mut wrong: String = new.map(|difference| &*difference.answers).collect();
    for title in listed {
        if found.iter().all(|difference| difference.title != title) {
            writeln!(wrong, "\n=== equal on both servers; remove it from differences.txt: {title}")
                .unwrap();
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// Runs a script on both servers and returns the differences.
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
        let theirs = stable_answer(&step, || answer(programs, real, &step));
        let started = Instant::now();
        let mut ours = answer(programs, embedded, &step);
        // The actors may be slower on one server; the final output counts.
        while step.eventually && ours != theirs && started.elapsed() < TIMEOUT {
            ours = answer(programs, embedded, &step);
        }
        let expected = if step.expected.is_empty() { &theirs } else { &step.expected };
        if ours != theirs || ours != *expected {
            let mut answers =
                format!("\n=== {title}\n--- kube-apiserver\n{theirs}\n--- embedded\n{ours}\n");
            if theirs != *expected {
                write!(answers, "--- expected\n{expected}\n").unwrap();
            }
            differences.push(Difference { title, answers });
        }
    }
    differences
}

/// Returns the title of a step; a repeated command gets a number.
fn title(name: &str, step: &Step<'_>, titles: &mut BTreeSet<String>) -> String {
    let title = format!("{name}: {}", step.command);
    let again = (2..).map(|n| format!("{title} #{n}"));
    let free = std::iter::once(title.clone()).chain(again).find(|title| !titles.contains(title));
    let free = free.unwrap_or(title);
    titles.insert(free.clone());
    free
}

/// Returns the output once it is stable, if the step is marked `eventually`.
fn stable_answer(step: &Step<'_>, mut answer: impl FnMut() -> String) -> String {
    let mut last = answer();
    let mut same = 0;
    while step.eventually && same < 5 {
        let next = answer();
        same = if next == last { same + 1 } else { 0 };
        last = next;
    }
    last
}

/// Returns the output of the command with masked values.
fn answer(programs: &Programs, cluster: &Cluster, step: &Step<'_>) -> String {
    let printed = kubectl(&programs.kubectl, &cluster.kubeconfig, step);
    let printed = normal(&printed);
    if step.sorted { sorted(&printed) } else { printed }
}

fn kubectl(program: &Path, kubeconfig: &Path, step: &Step<'_>) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", step.command]).env("KUBECONFIG", kubeconfig);
    command.env("PATH", path_with(program));
    // kubectl caches the discovery of a server by its address.
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
    let directory = program.parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([directory].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// Checks that every kind of the embedded server is the same on the real one.
fn kinds(programs: &Programs, (embedded, real): &(Cluster, Cluster)) -> Result<(), Failed> {
    for command in ["kubectl api-resources -o wide --no-headers", "kubectl api-versions"] {
        let step = Step {
            command,
            input: String::new(),
            eventually: false,
            sorted: false,
            expected: String::new(),
        };
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = |cluster| -> BTreeSet<String> {
            kubectl(&programs.kubectl, cluster_config(cluster), &step).lines().map(words).collect()
        };
        let (ours, theirs) = (lines(embedded), lines(real));
        let wrong: Vec<_> = ours.difference(&theirs).collect();
        if !wrong.is_empty() || ours.len() < 8 {
            return Err(format!("{command}: different on a real kube-apiserver: {wrong:#?}").into());
        }
    }
    Ok(())
}

fn cluster_config(cluster: &Cluster) -> &Path {
    &cluster.kubeconfig
}
