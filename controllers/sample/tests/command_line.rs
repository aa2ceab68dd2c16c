//! Error messages of the program for wrong input. They go to stderr, and the program fails.

use homeostat_testing::ProgramTest;

#[track_caller]
fn fails_with(arguments: &[&str], texts: &[&str]) {
    ProgramTest::new(env!("CARGO_BIN_EXE_homeostat-sample")).fails_with(arguments, texts);
}

#[test]
fn invalid_flags_are_named_in_the_error() {
    fails_with(&["--workers", "many"], &["'many'", "--workers"]);
    fails_with(&["--workers", "0"], &["must be at least 1", "--workers"]);
    fails_with(&["--workers", "-1"], &["'-1'", "write a whole number"]);
    fails_with(&["--resync", "30"], &["'30'", "--resync"]);
    fails_with(&["--kube-api-qps", "fast"], &["'fast'", "--kube-api-qps"]);
    fails_with(&["--no-such-flag"], &["--no-such-flag"]);
}

#[test]
fn missing_kubeconfig_is_named_in_the_error() {
    fails_with(&[], &["no kubeconfig", "$KUBECONFIG"]);
    let kubeconfig = ["--install-crd", "--kubeconfig", "/nonexistent/k"];
    fails_with(&kubeconfig, &["/nonexistent/k"]);
}
