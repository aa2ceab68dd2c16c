//! Breaks each promise once, and expects the test that its patch names to fail.
//!
//! ```text
//! cargo run -q -p homeostat-mutants             # all patches of mutants/
//! cargo run -q -p homeostat-mutants -- NAME…    # some of them
//! ```
//!
//! Most mutants change the body of a function. All of these are compiled into one copy of the
//! repository, each behind a switch ([`homeostat_mutants::weave`]), so that one build serves them.
//! The others are compiled one by one. A mutant that does not apply, does not compile or is not
//! caught is an error, and so is a test that fails without a mutant.
//!
//! The repository is the working directory. Everything is built below its `target`.

#![expect(
    clippy::disallowed_types,
    reason = "the work is measured in real time, without a runtime"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, fs, thread};

use anyhow::ensure;

use homeostat_mutants::cargo::{Cargo, Executables};
use homeostat_mutants::check;
use homeostat_mutants::check::{Outcome, Run};
use homeostat_mutants::mutant::{Mutant, Program, Test};
use homeostat_mutants::plan::Plan;
use homeostat_mutants::tree::Tree;

/// Tests that run at the same time. Many wait for sockets and leave a core idle.
const WORKERS: usize = 3;

/// The lines of a log that are shown.
const SHOWN_LINES: usize = 40;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print(&format!("failed: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Tries the mutants that the arguments name; returns true if all are caught.
fn run() -> anyhow::Result<bool> {
    let start = Instant::now();
    let root = env::current_dir()?;
    let mutants = mutants(&root, env::args().skip(1))?;
    let plan = Plan::new(&root, &mutants)?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join("mutants");
    let tree = Tree::copy(&root, folder.join("copy"), &plan.changes()?)?;
    let cargo = Cargo::new(tree.folder(), &folder, &target)?;

    let mut missed = try_switched(&cargo, &plan)?;
    let took = || start.elapsed().as_secs();
    print(&format!("{} mutants in one build, {} s", plan.switched.len(), took()));
    for (mutant, mutated) in &plan.alone {
        if !try_alone(&cargo, &tree, mutant, mutated)? {
            missed.push(&mutant.name);
        }
        tree.write(&mutant.file, plan.text(&mutant.file)?.as_bytes())?;
    }
    let caught = mutants.len() - missed.len();
    print(&format!("{caught} of {} mutants are caught, {} s", mutants.len(), took()));
    if !missed.is_empty() {
        // Last, since a log is often cut at its beginning.
        print(&format!("not caught: {}", missed.join(" ")));
    }
    Ok(missed.is_empty())
}

/// Returns the mutants with these names, or all, in the order of their files.
fn mutants(root: &Path, names: impl Iterator<Item = String>) -> anyhow::Result<Vec<Mutant>> {
    let mut patches: Vec<PathBuf> =
        names.map(|name| PathBuf::from(format!("mutants/{name}.patch"))).collect();
    if patches.is_empty() {
        for entry in fs::read_dir(root.join("mutants"))? {
            let name = entry?.file_name();
            if Path::new(&name).extension().is_some_and(|extension| extension == "patch") {
                patches.push(Path::new("mutants").join(name));
            }
        }
    }
    let mut mutants = patches
        .iter()
        .map(|patch| Mutant::read(&root.join(patch)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    mutants.sort_by(|a, b| (&a.file, &a.name).cmp(&(&b.file, &b.name)));
    Ok(mutants)
}

/// Tries the mutants that are behind switches; returns the names of those that are not caught.
fn try_switched<'a>(cargo: &Cargo, plan: &Plan<'a>) -> anyhow::Result<Vec<&'a str>> {
    let mutants = &plan.switched;
    let programs: BTreeSet<&Program> = mutants.iter().map(|mutant| &mutant.test.program).collect();
    let executables = cargo.build(&programs).map_err(|error| {
        let blamed = Vec::from_iter(plan.blamed(&error.to_string())).join(" ");
        error.context(format!("mutants do not compile: {blamed}"))
    })?;
    let tests: BTreeSet<&Test> = mutants.iter().map(|mutant| &mutant.test).collect();
    side_by_side(&Vec::from_iter(tests), |test| passes_without_mutant(&executables, test))?;
    let outcomes = side_by_side(mutants, |mutant| {
        let executable = &executables[&mutant.test.program];
        let run = check::run(executable, &mutant.test.filter, Some(&mutant.name))?;
        report(mutant, &run);
        Ok(run.outcome)
    })?;
    let outcomes = mutants.iter().zip(outcomes);
    let missed = outcomes.filter(|(_, outcome)| *outcome == Outcome::Passed);
    Ok(missed.map(|(mutant, _)| mutant.name.as_str()).collect())
}

/// Does `work` for each of `items`, on [`WORKERS`] threads; returns the results in their order.
fn side_by_side<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let thread = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let mine = numbers.map_while(|number| Some((number, items.get(number)?)));
        mine.map(|(number, item)| Ok((number, work(item)?))).collect::<anyhow::Result<Vec<_>>>()
    };
    let results: anyhow::Result<Vec<_>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread does not panic")).collect()
    });
    let mut results: Vec<(usize, R)> = results?.into_iter().flatten().collect();
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Fails unless the test passes while no mutant is active.
fn passes_without_mutant(executables: &Executables, test: &Test) -> anyhow::Result<()> {
    let run = check::run(&executables[&test.program], &test.filter, None)?;
    ensure!(run.outcome == Outcome::Passed, "{test} fails without a mutant:\n{}", end(&run.log));
    Ok(())
}

/// Compiles one mutant, and runs its test; returns true if it is caught.
fn try_alone(cargo: &Cargo, tree: &Tree, mutant: &Mutant, mutated: &str) -> anyhow::Result<bool> {
    let start = Instant::now();
    tree.write(&mutant.file, mutated.as_bytes())?;
    let executables = match cargo.build(&BTreeSet::from([&mutant.test.program])) {
        Ok(executables) => executables,
        Err(error) => {
            print(&format!("{:<46} DOES NOT COMPILE\n{}", mutant.name, end(&error.to_string())));
            return Ok(false);
        }
    };
    let executable = &executables[&mutant.test.program];
    let run = check::run(executable, &mutant.test.filter, None)?;
    report(mutant, &Run { took: start.elapsed(), ..run });
    Ok(run.outcome != Outcome::Passed)
}

/// Prints the outcome for one mutant, and the end of the log if it is not caught.
fn report(mutant: &Mutant, run: &Run) {
    let (name, test) = (&mutant.name, &mutant.test.filter);
    print(&format!("{name:<46} {:<20} {:>5.1} s  {test}", run.outcome, run.took.as_secs_f64()));
    if run.outcome == Outcome::Passed {
        print(&end(&run.log));
    }
}

/// Returns the last lines of a log.
fn end(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn print(line: &str) {
    println!("{line}");
}
