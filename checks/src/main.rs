//! Checks the language of the repository.
//!
//! ```text
//! cargo run -q -p homeostat-checks                 # everything
//! cargo run -q -p homeostat-checks -- informer     # one folder, or one file
//! cargo run -q -p homeostat-checks -- --count      # the number of findings by rule
//! ```
//!
//! Prints one line for each finding, and exits with 1 if there is any.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use homeostat_checks::language::{Exceptions, Finding, check};
use homeostat_checks::{root, sources};

fn main() -> ExitCode {
    match run() {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            print(&format!("failed: {error}"));
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<Vec<Finding>, Box<dyn std::error::Error>> {
    let mut counts_only = false;
    let mut paths = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--count" => counts_only = true,
            path => paths.push(PathBuf::from(path)),
        }
    }
    let is_everything = paths.is_empty();
    if is_everything {
        paths.push(root());
    }
    let mut exceptions = Exceptions::parse(include_str!("../exceptions.txt"))?;
    let mut findings = findings(&paths)?;
    findings.retain(|finding| !exceptions.allow(finding));
    if !counts_only {
        for finding in &findings {
            print(&finding.to_string());
        }
    }
    summarize(&findings);
    let unused: Vec<_> = exceptions.unused().collect();
    if is_everything && !unused.is_empty() {
        return Err(format!("unused exceptions: {unused:?}").into());
    }
    Ok(findings)
}

fn findings(paths: &[PathBuf]) -> std::io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in paths {
        let path: &Path = path;
        findings.extend(sources(path)?.iter().flat_map(check));
    }
    Ok(findings)
}

/// Prints the number of findings by rule.
fn summarize(findings: &[Finding]) {
    let mut counts = BTreeMap::<_, usize>::new();
    for finding in findings {
        *counts.entry(finding.rule).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
    print(&format!("{} findings ({})", findings.len(), counts.join(", ")));
}

#[expect(clippy::print_stdout, reason = "findings are the output of this program")]
fn print(line: &str) {
    println!("{line}");
}
