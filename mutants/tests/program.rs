//! The program on a small repository.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A library with a function, a constant and a test of each.
const SOURCE: &str = "pub const LIMIT: u32 = 3;

pub fn twice(number: u32) -> u32 {
    number * 2
}

#[test]
fn number_is_doubled() {
    assert_eq!(twice(2), 4);
}

#[test]
fn limit_is_three() {
    assert_eq!(LIMIT, 3);
}
";

const MANIFEST: &str = "[package]\nname = \"homeostat-small\"\nedition = \"2024\"\n[workspace]\n";

/// Runs the program on a repository with these patches: name, test, old text, new text.
fn run(source: &str, patches: &[(&str, &str, &str, &str)]) -> Output {
    let repository = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = repository.path().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("Cargo.toml", MANIFEST);
    write(".cargo/config.toml", "");
    write(".gitignore", "target\n");
    write("src/lib.rs", source);
    for (name, test, old, new) in patches {
        let header = format!("# caught by: -p homeostat-small --lib {test}");
        let hunk = hunk(source, old, new);
        let patch = format!("{header}\n--- a/src/lib.rs\n+++ b/src/lib.rs\n{hunk}");
        write(&format!("mutants/{name}.patch"), &patch);
    }
    assert!(git(repository.path(), "init").status.success());
    let mut program = Command::new(env!("CARGO_BIN_EXE_homeostat-mutants"));
    program
        .current_dir(repository.path())
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("it starts")
}

fn git(folder: &Path, command: &str) -> Output {
    Command::new("git").args([command, "--quiet"]).current_dir(folder).output().expect("Git")
}

/// Returns a hunk that replaces one line.
fn hunk(source: &str, old: &str, new: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let at = lines.iter().position(|line| line.contains(old)).expect("a line has the text");
    let (before, after) = (lines[at], lines[at].replace(old, new));
    let next = lines[at + 1];
    format!("@@ -{0},2 +{0},2 @@\n-{before}\n+{after}\n {next}\n", at + 1)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn caught_mutants_share_a_build_or_have_their_own() {
    let output = run(
        SOURCE,
        &[
            ("three_times", "number_is_doubled", "* 2", "* 3"),
            ("four", "limit_is_three", "= 3", "= 4"),
        ],
    );
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 mutants in one build"), "{text}");
    assert!(text.contains("2 of 2 mutants are caught"), "{text}");
}

#[test]
fn mutant_that_its_test_does_not_catch_fails_the_run() {
    let output = run(
        SOURCE,
        &[
            ("three_times", "limit_is_three", "* 2", "* 3"),
            ("four", "number_is_doubled", "= 3", "= 4"),
        ],
    );
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("0 of 2 mutants are caught"), "{text}");
    assert!(text.contains("not caught: three_times four"), "{text}");
}

#[test]
fn failure_without_a_mutant_catches_nothing() {
    let broken = SOURCE.replace("twice(2), 4", "twice(2), 5");
    let output = run(&broken, &[("three_times", "number_is_doubled", "* 2", "* 3")]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("number_is_doubled fails without a mutant"), "{text}");
}

#[test]
fn mutants_that_do_not_compile_are_named() {
    let with_warning = ("unused", "limit_is_three", "number * 2", "{ let unused = 1; 2 }");
    let output = run(SOURCE, &[("no_number", "number_is_doubled", "* 2", "* \"\""), with_warning]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!text.contains("unused"), "only errors are shown: {text}");
    assert!(text.contains("mutants do not compile: no_number: error[E0277]"), "{text}");
    let output = run(SOURCE, &[("no_constant", "limit_is_three", "u32 = 3", "u32 = \"\"")]);
    let text = self::text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not caught: no_constant"), "{text}");
}
