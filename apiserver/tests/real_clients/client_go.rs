//! Runs the program in `client-go/`, which uses client-go as a Go controller does.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use libtest_mimic::{Failed, Trial};
use tokio::runtime::Runtime;

use crate::cluster::{Cluster, Server};
use crate::{go, with_programs};

/// The parts of the program. Those in `EMBEDDED_ONLY` request disruptions of the embedded server.
const ON_BOTH: [&str; 5] = ["objects", "election", "events", "metadata", "foos"];
const EMBEDDED_ONLY: [&str; 2] = ["lists", "caches"];

pub(crate) fn trials() -> Vec<Trial> {
    let embedded = ON_BOTH.iter().chain(&EMBEDDED_ONLY).map(|&part| {
        with_programs(&format!("client-go::{part}"), move |_| {
            Runtime::new()?.block_on(async { run(part, &Cluster::embedded().await?) })
        })
    });
    let real = with_programs("client-go on a real kube-apiserver", |_| {
        Runtime::new()?.block_on(async {
            let cluster = Cluster::real().await?;
            ON_BOTH.into_iter().try_for_each(|part| run(part, &cluster))
        })
    });
    embedded.chain([real]).collect()
}

/// Runs a part of the program and executes the disruptions that it requests.
fn run(part: &str, cluster: &Cluster) -> Result<(), Failed> {
    let mut command = Command::new(program()?);
    command.arg(&cluster.kubeconfig).arg(part);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn()?;
    let mut answers = child.stdin.take().unwrap();
    let mut last = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        last = line?;
        if last == "done" {
            break;
        }
        disrupt(&last, cluster)?;
        answers.write_all(b"\n")?;
    }
    end(child, part, &last)
}

fn disrupt(what: &str, cluster: &Cluster) -> Result<(), Failed> {
    let Server::Embedded { server, .. } = &cluster.server else {
        return Err(format!("the real server cannot {what}").into());
    };
    match what {
        "restart" => server.restart(),
        "compact" => server.expire_history(),
        other => return Err(format!("unknown request of the program: {other:?}").into()),
    }
    Ok(())
}

fn end(mut child: Child, part: &str, last: &str) -> Result<(), Failed> {
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log)?;
    if child.wait()?.success() && last == "done" {
        return Ok(());
    }
    Err(format!("client-go {part}:\n{log}").into())
}

/// Returns the program, which is built once per test run.
fn program() -> Result<&'static Path, Failed> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| go::build("client-go")).as_ref();
    built.map(PathBuf::as_path).map_err(|why| why.as_str().into())
}
