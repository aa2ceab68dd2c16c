//! client-go, as a Go controller uses it: `client-go/` is the program.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use libtest_mimic::{Failed, Trial};
use tokio::runtime::Runtime;

use crate::cluster::{Cluster, Server};
use crate::with_programs;

/// What the program can show. The second half asks for things that are done to the embedded server only.
const ON_BOTH: [&str; 4] = ["objects", "election", "events", "metadata"];
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

/// Runs the program, and does what it asks for.
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
        obey(&last, cluster)?;
        answers.write_all(b"\n")?;
    }
    end(child, part, &last)
}

fn obey(what: &str, cluster: &Cluster) -> Result<(), Failed> {
    let Server::Embedded { server, .. } = &cluster.server else {
        return Err(format!("the real server is not to {what}").into());
    };
    match what {
        "restart" => server.restart(),
        "compact" => server.compact(),
        other => return Err(format!("the program asks for {other:?}").into()),
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

/// The program, built once for all tests of a run. Go keeps what it has compiled.
fn program() -> Result<&'static Path, Failed> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(build).as_ref();
    built.map(PathBuf::as_path).map_err(|why| why.as_str().into())
}

fn build() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_clients/client-go");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("client-go");
    let mut go = Command::new("go");
    go.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(source);
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly");
    match go.output() {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("Go 1.26 or newer is needed to build client-go: {error}")),
    }
}
