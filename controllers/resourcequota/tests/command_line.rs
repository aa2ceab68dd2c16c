//! Error messages of the program for wrong input. They go to stderr, and the program fails.

use homeostat_testing::ProgramTest;

#[track_caller]
fn fails_with(arguments: &[&str], texts: &[&str]) {
    ProgramTest::new(env!("CARGO_BIN_EXE_homeostat-resourcequota")).fails_with(arguments, texts);
}

#[test]
fn duration_without_unit_is_an_error_with_the_flag() {
    fails_with(&["--resource-quota-sync-period", "300"], &["--resource-quota-sync-period", "300"]);
}

#[test]
fn zero_workers_are_an_error_with_the_minimum() {
    let flag = "--concurrent-resource-quota-syncs";
    fails_with(&[flag, "0"], &[flag, "must be at least 1"]);
}

#[test]
fn bad_gate_is_an_error_with_the_allowed_values() {
    let words = ["PodLevelResources", "neither true nor false"];
    fails_with(&["--feature-gates", "PodLevelResources=maybe"], &words);
    fails_with(&["--feature-gates", "PodLevelResources"], &["PodLevelResources=true"]);
}

#[test]
fn periods_of_zero_and_less_are_accepted_and_a_missing_kubeconfig_is_named() {
    for period in ["0s", "-5m0s"] {
        let period = format!("--resource-quota-sync-period={period}");
        fails_with(&[&period, "--kubeconfig", "/nonexistent/config"], &["/nonexistent/config"]);
    }
}

#[test]
fn namespace_is_an_error_because_all_are_counted() {
    fails_with(&["--namespace", "shop"], &["--namespace", "works in all namespaces"]);
}
