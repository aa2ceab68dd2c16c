//! Compiles the test programs of the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::mutant::Program;

/// Compiles test programs in a target folder of their own.
#[derive(Debug)]
pub struct Cargo {
    copy: PathBuf,
    target: PathBuf,
    loom: PathBuf,
}

/// A compiled test program.
#[derive(Clone, Debug)]
pub struct Executable {
    /// Folder in which it runs: that of its package.
    pub folder: PathBuf,
    /// The program.
    pub path: PathBuf,
}

/// The executables by their program.
pub type Executables = BTreeMap<Program, Executable>;

/// A message of Cargo about something that it compiled.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

// === impl Cargo ===

impl Cargo {
    /// Returns a Cargo that compiles `copy` in `folder`.
    ///
    /// It starts with the dependencies that other steps have compiled in `target`.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be linked.
    pub fn new(copy: &Path, folder: &Path, target: &Path) -> anyhow::Result<Self> {
        let cargo = Self {
            copy: copy.to_owned(),
            target: folder.join("target"),
            loom: folder.join("loom"),
        };
        borrow(&target.join("debug"), &cargo.target.join("debug"))?;
        borrow(&target.join("loom/debug"), &cargo.loom.join("debug"))?;
        Ok(cargo)
    }

    /// Compiles `programs`.
    ///
    /// # Errors
    ///
    /// Fails with the compiler's messages if the copy does not compile, and if a program is not
    /// there.
    pub fn build(&self, programs: &BTreeSet<&Program>) -> anyhow::Result<Executables> {
        let mut executables = Executables::new();
        for is_loom in [false, true] {
            let programs: Vec<&Program> =
                programs.iter().copied().filter(|program| program.is_loom == is_loom).collect();
            if !programs.is_empty() {
                executables.extend(self.compile(is_loom, &programs)?);
            }
        }
        for program in programs {
            let is_known = executables.contains_key(program);
            ensure!(is_known, "{} has no tests {:?}", program.package, program.file);
        }
        Ok(executables)
    }

    fn compile(&self, is_loom: bool, programs: &[&Program]) -> anyhow::Result<Executables> {
        let mut command = Command::new("cargo");
        command
            .args(["test", "--quiet", "--no-run", "--message-format=json-render-diagnostics"])
            .args(arguments(programs))
            .current_dir(&self.copy)
            .stdin(Stdio::null())
            .env("CARGO_TERM_COLOR", "never");
        if is_loom {
            command.env("RUSTFLAGS", "--cfg homeostat_loom").env("CARGO_TARGET_DIR", &self.loom);
        } else {
            command.env("CARGO_TARGET_DIR", &self.target).envs(ONE_SET_OF_FEATURES);
        }
        let output = command.output().context("cargo")?;
        let report = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", errors(&report));
        let messages = String::from_utf8(output.stdout)?;
        Ok(messages.lines().filter_map(|line| executable(is_loom, line)).collect())
    }
}

/// Every package is compiled with the features that the workspace needs together, as `cargo test
/// --workspace` does.
///
/// Else each one compiles variants of its own of tokio, k8s-openapi and others. The setting is
/// unstable: Cargo accepts it from a development version only. (`RUSTC_BOOTSTRAP=1` would do, too,
/// but build scripts of dependencies look at it.)
const ONE_SET_OF_FEATURES: [(&str, &str); 3] = [
    ("CARGO_RESOLVER_FEATURE_UNIFICATION", "workspace"),
    ("CARGO_UNSTABLE_FEATURE_UNIFICATION", "true"),
    ("__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS", "dev"),
];

/// Returns Cargo's arguments that select `programs`, and those of another package that have the
/// same name.
fn arguments(programs: &[&Program]) -> Vec<String> {
    let mut words = BTreeSet::new();
    for program in programs {
        words.insert(format!("--package={}", program.package));
        words.insert(match &program.file {
            Some(file) => format!("--test={file}"),
            None => "--lib".to_owned(),
        });
    }
    words.into_iter().collect()
}

/// Returns the errors of Cargo's report: mutants leave variables unused, and cause warnings.
fn errors(report: &str) -> String {
    let mut is_error = false;
    let lines = report.lines().filter(|line| {
        is_error = line.starts_with("error") || is_error && !line.starts_with("warning");
        is_error
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the test program that a message of Cargo is about, if it is about one.
fn executable(is_loom: bool, message: &str) -> Option<(Program, Executable)> {
    let artifact: Artifact = serde_json::from_str(message).ok()?;
    let path = artifact.executable.filter(|_| artifact.profile.test)?;
    let folder = artifact.manifest_path.parent()?.to_owned();
    let package = package(&artifact.manifest_path)?;
    let is_file = artifact.target.kind.iter().any(|kind| kind == "test");
    let file = is_file.then_some(artifact.target.name);
    Some((Program { is_loom, package, file }, Executable { folder, path }))
}

/// Returns the name of the package of a manifest.
pub(crate) fn package(manifest: &Path) -> Option<String> {
    let manifest = fs::read_to_string(manifest).ok()?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
    Some(name.trim_end_matches('"').to_owned())
}

/// Links the dependencies that are compiled in `from` into `to`, unless `to` is there.
fn borrow(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.join(".fingerprint").is_dir() || to.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    let mut link = Command::new("cp");
    link.arg("-al").arg(from.join("deps")).arg(from.join("build")).arg(to);
    // Cargo writes these files again in place.
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(from.join(".fingerprint")).arg(to);
    for mut command in [link, copy] {
        let status = command.status().context("cp")?;
        ensure!(status.success(), "{command:?}: {status}");
    }
    Ok(())
}
