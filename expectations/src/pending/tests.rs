use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Pending, TIMEOUT};

#[test]
fn creations_are_fulfilled_when_all_were_observed() {
    let mut pending = Pending::<u8>::creations(2, Instant::now());
    assert!(!pending.fulfilled());
    pending.lower_creations(1);
    assert!(!pending.fulfilled());
    pending.lower_creations(1);
    assert!(pending.fulfilled());
}

#[test]
fn counts_end_at_zero() {
    let mut pending = Pending::<u8>::creations(1, Instant::now());
    pending.lower_creations(usize::MAX);
    pending.lower_creations(1);
    assert!(pending.fulfilled());
    assert_eq!(pending.outstanding(Instant::now()).creations, 0);
}

#[test]
fn each_deletion_counts_once_and_unknown_ones_never() {
    let mut pending = Pending::deletions(HashSet::from(['a', 'b']), Instant::now());
    assert_eq!(pending.lower_deletion(&'c'), None);
    assert_eq!(pending.lower_deletion(&'a'), Some('a'));
    assert_eq!(pending.lower_deletion(&'a'), None);
    assert!(!pending.fulfilled());
    assert_eq!(pending.lower_deletion(&'b'), Some('b'));
    assert!(pending.fulfilled());
}

#[test]
fn nothing_to_expect_is_fulfilled() {
    assert!(Pending::<u8>::creations(0, Instant::now()).fulfilled());
    assert!(Pending::<u8>::deletions(HashSet::new(), Instant::now()).fulfilled());
}

#[test]
fn expectations_expire_after_five_minutes_not_at_five() {
    let now = Instant::now();
    let pending = Pending::<u8>::creations(1, now);
    assert_eq!(TIMEOUT, Duration::from_secs(300));
    assert!(!pending.expired(now));
    assert!(!pending.expired(now + TIMEOUT));
    assert!(pending.expired(now + TIMEOUT + Duration::from_nanos(1)));
}

#[test]
fn what_is_outstanding_reads_as_a_sentence() {
    let now = Instant::now();
    let mut pending = Pending::deletions(HashSet::from(['a', 'b']), now);
    pending.creations = 3;
    let outstanding = pending.outstanding(now + Duration::from_millis(1500));
    assert_eq!(outstanding.to_string(), "3 creations and 2 deletions since 1.5s");
}
