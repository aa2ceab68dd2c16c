//! Error messages of the program for wrong input. They go to stderr, and the program fails.

use homeostat_testing::ProgramTest;

#[track_caller]
fn fails_with(arguments: &[&str], texts: &[&str]) {
    ProgramTest::new(env!("CARGO_BIN_EXE_homeostat-resourceclaim")).fails_with(arguments, texts);
}

#[test]
fn invalid_flags_are_named_in_the_error() {
    fails_with(&["--workers", "many"], &["'many'", "--workers"]);
    fails_with(&["--concurrent-resourceclaim-syncs", "0"], &["must be at least 1"]);
    fails_with(
        &["--feature-gates", "DRAAdminAccess=perhaps"],
        &["DRAAdminAccess", "\"perhaps\"", "neither true nor false"],
    );
    fails_with(&["--no-such-flag"], &["--no-such-flag"]);
}

#[test]
fn upstream_flags_are_accepted_and_a_missing_kubeconfig_is_named() {
    let gates = "DRAAdminAccess=false,GenericWorkload=true,Unknown=true";
    let arguments = ["--concurrent-resourceclaim-syncs", "10", "--feature-gates", gates];
    fails_with(&arguments, &["no kubeconfig", "$KUBECONFIG"]);
    let arguments = ["--metrics-of-1-36", "--kubeconfig", "/nonexistent/k"];
    fails_with(&arguments, &["/nonexistent/k"]);
}
