//! A test for each promise of the expectations.

use std::time::Duration;

use homeostat_expectations::UidTrackingExpectations;
use tokio::time::advance;

type Expectations = UidTrackingExpectations<&'static str, &'static str>;

const KEY: &str = "default/web";
const OWNER: &str = "uid-1";
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

fn satisfied(expectations: &Expectations) -> bool {
    expectations.satisfied(&KEY, &OWNER)
}

fn creations(expectations: &Expectations) -> i64 {
    expectations.outstanding(&KEY, &OWNER).expect("the key has an entry").creations
}

/// Expects `count` creations and sends all their requests.
fn expect_sent(expectations: &Expectations, count: usize) {
    let expected = expectations.expect_creations(&KEY, &OWNER, count);
    for _ in 0..count {
        expected.start().sent();
    }
}

// === satisfied ===

#[test]
fn unknown_key_is_satisfied() {
    let expectations = Expectations::default();
    assert!(satisfied(&expectations));
    assert_eq!(expectations.outstanding(&KEY, &OWNER), None);
}

#[test]
fn entry_without_writes_is_satisfied() {
    let expectations = Expectations::default();
    drop(expectations.expect_creations(&KEY, &OWNER, 0));
    drop(expectations.expect_deletions(&KEY, &OWNER, []));
    assert!(satisfied(&expectations));
}

#[test]
fn key_is_satisfied_when_all_creations_were_observed() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 2);
    assert!(!satisfied(&expectations));
    expectations.creation_observed(&KEY, &OWNER);
    assert!(!satisfied(&expectations));
    expectations.creation_observed(&KEY, &OWNER);
    assert!(satisfied(&expectations));
}

#[test]
fn other_keys_are_not_affected() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 1);
    assert!(expectations.satisfied(&"default/other", &OWNER));
    expectations.creation_observed(&"default/other", &OWNER);
    assert!(!satisfied(&expectations));
}

#[tokio::test(start_paused = true)]
async fn expectations_expire_after_five_minutes() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 1);
    advance(TIMEOUT).await;
    assert!(!satisfied(&expectations), "at exactly five minutes it has not expired");
    advance(Duration::from_millis(1)).await;
    assert!(satisfied(&expectations));
    // The next entry has its own five minutes.
    expect_sent(&expectations, 1);
    assert!(!satisfied(&expectations));
}

#[test]
fn deleted_key_is_satisfied() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 1);
    expectations.delete(&KEY);
    assert!(satisfied(&expectations));
}

// === creations: events may arrive before the response, twice, or for other owners ===

#[test]
fn creation_observed_before_the_reply_counts() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 1);
    let token = expected.start();
    expectations.creation_observed(&KEY, &OWNER);
    token.sent();
    drop(expected);
    assert!(satisfied(&expectations));
}

#[test]
fn unexpected_creation_does_not_lower_later_expectations() {
    let expectations = Expectations::default();
    expectations.creation_observed(&KEY, &OWNER);
    expect_sent(&expectations, 0);
    expectations.creation_observed(&KEY, &OWNER);
    expectations.creation_observed(&KEY, &OWNER);
    expect_sent(&expectations, 1);
    assert!(!satisfied(&expectations));
}

// === deletions: each uid counts once ===

#[test]
fn each_deletion_counts_once() {
    let expectations = Expectations::default();
    let expected = expectations.expect_deletions(&KEY, &OWNER, ["a", "b", "a"]);
    for uid in ["a", "b"] {
        expected.start(&uid).sent();
    }
    drop(expected);
    expectations.deletion_observed(&KEY, &OWNER, &"a"); // the deletionTimestamp
    expectations.deletion_observed(&KEY, &OWNER, &"a"); // the removal
    expectations.deletion_observed(&KEY, &OWNER, &"unexpected");
    assert!(!satisfied(&expectations));
    expectations.deletion_observed(&KEY, &OWNER, &"b");
    assert!(satisfied(&expectations));
}

#[test]
fn creations_and_deletions_do_not_lower_each_other() {
    let expectations = Expectations::default();
    let expected = expectations.expect_deletions(&KEY, &OWNER, ["a"]);
    expected.start(&"a").sent();
    expectations.creation_observed(&KEY, &OWNER);
    assert!(!satisfied(&expectations));
    expect_sent(&expectations, 1);
    expectations.deletion_observed(&KEY, &OWNER, &"a");
    assert!(!satisfied(&expectations));
}

// === owners: another uid has no expectations ===

#[test]
fn recreated_owner_has_no_expectations() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 1);
    assert!(expectations.satisfied(&KEY, &"uid-2"));
    assert_eq!(expectations.outstanding(&KEY, &"uid-2"), None);
}

#[test]
fn events_of_another_owner_lower_nothing() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 1);
    expectations.creation_observed(&KEY, &"uid-0");
    assert!(!satisfied(&expectations));
    let expected = expectations.expect_deletions(&KEY, &OWNER, ["a"]);
    expected.start(&"a").sent();
    expectations.deletion_observed(&KEY, &"uid-0", &"a");
    assert!(!satisfied(&expectations));
}

// === guards and tokens ===

#[test]
fn creations_that_were_never_started_are_not_expected() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 5);
    expected.start().sent();
    expected.start().sent();
    assert_eq!(creations(&expectations), 5, "the guard may still start them");
    drop(expected);
    assert_eq!(creations(&expectations), 2);
}

#[test]
fn refused_creation_is_not_expected() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 2);
    expected.start().refused();
    assert_eq!(creations(&expectations), 1);
    expected.start().refused();
    drop(expected);
    assert!(satisfied(&expectations));
}

#[test]
fn creation_whose_outcome_is_unknown_stays_expected() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 1);
    drop(expected.start());
    drop(expected);
    assert!(!satisfied(&expectations), "the server may have carried it out");
    expectations.creation_observed(&KEY, &OWNER);
    assert!(satisfied(&expectations));
}

#[tokio::test]
async fn requests_may_run_concurrently_and_be_cancelled() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 3);
    let request = async || {
        let token = expected.start();
        std::future::pending::<()>().await;
        token.refused();
    };
    let requests = async { tokio::join!(request(), request()) };
    let timeout = tokio::time::timeout(Duration::from_millis(1), requests).await;
    assert!(timeout.is_err());
    drop(expected);
    assert_eq!(creations(&expectations), 2, "two were in flight, the third was never started");
}

#[test]
fn token_outlives_its_guard() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 2);
    let token = expected.start();
    drop(expected);
    assert_eq!(creations(&expectations), 1);
    token.refused();
    assert!(satisfied(&expectations));
}

#[test]
fn surplus_token_lowers_nothing() {
    let expectations = Expectations::default();
    let expected = expectations.expect_creations(&KEY, &OWNER, 1);
    let (counted, surplus) = (expected.start(), expected.start());
    surplus.refused();
    assert_eq!(creations(&expectations), 1);
    counted.sent();
    drop(expected);
    assert!(!satisfied(&expectations));
}

#[test]
fn deletions_that_were_refused_or_never_started_are_not_expected() {
    let expectations = Expectations::default();
    let expected = expectations.expect_deletions(&KEY, &OWNER, ["sent", "refused", "lost", "none"]);
    expected.start(&"sent").sent();
    expected.start(&"refused").refused();
    drop(expected.start(&"lost"));
    drop(expected);
    expectations.deletion_observed(&KEY, &OWNER, &"sent");
    assert!(!satisfied(&expectations));
    expectations.deletion_observed(&KEY, &OWNER, &"lost");
    assert!(satisfied(&expectations));
}

#[test]
fn deletion_started_twice_or_not_expected_lowers_nothing() {
    let expectations = Expectations::default();
    let expected = expectations.expect_deletions(&KEY, &OWNER, ["a"]);
    let token = expected.start(&"a");
    expected.start(&"a").refused();
    expected.start(&"b").refused();
    assert!(!satisfied(&expectations));
    token.refused();
    assert!(satisfied(&expectations));
}

// === generations: a guard lowers only its own entry ===

#[test]
fn later_expectations_replace_earlier_ones_of_either_kind() {
    let expectations = Expectations::default();
    expect_sent(&expectations, 5);
    let expected = expectations.expect_deletions(&KEY, &OWNER, ["a"]);
    expected.start(&"a").sent();
    expectations.deletion_observed(&KEY, &OWNER, &"a");
    assert!(satisfied(&expectations), "the new entry has replaced the creations");
    expect_sent(&expectations, 1);
    assert_eq!(creations(&expectations), 1);
}

#[test]
fn old_guard_and_its_tokens_lower_only_their_own_entry() {
    let expectations = Expectations::default();
    let old = expectations.expect_creations(&KEY, &OWNER, 3);
    let old_token = old.start();
    expect_sent(&expectations, 3);
    old_token.refused();
    drop(old);
    assert_eq!(creations(&expectations), 3);
}

#[test]
fn old_guard_of_deletions_lowers_only_its_own_entry() {
    let expectations = Expectations::default();
    let old = expectations.expect_deletions(&KEY, &OWNER, ["a", "b"]);
    let old_token = old.start(&"a");
    let new = expectations.expect_deletions(&KEY, &OWNER, ["a", "b"]);
    new.start(&"a").sent();
    new.start(&"b").sent();
    old_token.refused();
    drop((old, new));
    let outstanding = expectations.outstanding(&KEY, &OWNER).expect("the key has an entry");
    assert_eq!(outstanding.deletions, 2);
}

#[test]
fn guard_from_before_a_delete_does_not_lower_a_later_entry() {
    let expectations = Expectations::default();
    let old = expectations.expect_creations(&KEY, &OWNER, 2);
    expectations.delete(&KEY);
    expect_sent(&expectations, 2);
    drop(old);
    assert_eq!(creations(&expectations), 2);
}

#[test]
fn clones_share_their_entries() {
    let expectations = Expectations::default();
    let clone = expectations.clone();
    expect_sent(&expectations, 1);
    assert!(!satisfied(&clone));
}
