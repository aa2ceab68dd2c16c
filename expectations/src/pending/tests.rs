use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Pending, TIMEOUT, Verdict};

fn fulfilled(pending: &mut Pending<char>) -> bool {
    pending.verdict(Instant::now()) == Verdict::Fulfilled
}

#[test]
fn counts_are_fulfilled_when_all_were_observed() {
    let mut pending = Pending::counts(2, 1, Instant::now());
    pending.lower(1, 1);
    assert!(!fulfilled(&mut pending));
    pending.lower(1, 0);
    assert!(fulfilled(&mut pending));
}

#[test]
fn counts_go_below_zero_and_are_raised_from_there() {
    let mut pending = Pending::counts(1, 0, Instant::now());
    pending.lower(3, 1);
    assert!(fulfilled(&mut pending));
    let outstanding = pending.outstanding(Instant::now());
    assert_eq!((outstanding.creations, outstanding.deletions), (-2, -1));
    pending.raise(2, 1);
    assert!(fulfilled(&mut pending));
    pending.raise(0, 1);
    assert!(!fulfilled(&mut pending));
}

#[test]
fn large_counts_saturate() {
    let mut pending = Pending::counts(usize::MAX, 0, Instant::now());
    pending.raise(usize::MAX, 0);
    assert!(!fulfilled(&mut pending));
    (0..3).for_each(|_| pending.lower(usize::MAX, usize::MAX));
    assert!(fulfilled(&mut pending));
}

#[test]
fn each_deletion_counts_once_and_unknown_deletion_never() {
    let mut pending = Pending::deletions_of(HashSet::from(['a', 'b']), Instant::now());
    assert_eq!(pending.lower_deletion_of(&'c'), None);
    assert_eq!(pending.lower_deletion_of(&'a'), Some('a'));
    assert_eq!(pending.lower_deletion_of(&'a'), None);
    assert!(!fulfilled(&mut pending));
    assert!(pending.awaits_uids());
    assert_eq!(pending.lower_deletion_of(&'b'), Some('b'));
    assert!(fulfilled(&mut pending));
    assert!(!pending.awaits_uids());
}

#[test]
fn entry_without_writes_is_fulfilled() {
    assert!(fulfilled(&mut Pending::counts(0, 0, Instant::now())));
    assert!(fulfilled(&mut Pending::deletions_of(HashSet::new(), Instant::now())));
}

#[test]
fn entry_expires_after_exactly_five_minutes_and_reports_it_once() {
    let now = Instant::now();
    let mut pending = Pending::<char>::counts(1, 0, now);
    assert_eq!(TIMEOUT, Duration::from_secs(300));
    assert_eq!(pending.verdict(now), Verdict::Waiting);
    assert_eq!(pending.verdict(now + TIMEOUT), Verdict::Waiting);
    let later = now + TIMEOUT + Duration::from_nanos(1);
    assert_eq!(pending.verdict(later), Verdict::Expired { first: true });
    assert_eq!(pending.verdict(later), Verdict::Expired { first: false });
    pending.raise(1, 0);
    assert_eq!(pending.verdict(later), Verdict::Expired { first: false }, "no time is added");
}

#[test]
fn outstanding_displays_counts_and_age() {
    let now = Instant::now();
    let mut pending = Pending::deletions_of(HashSet::from(['a', 'b']), now);
    pending.creations = 3;
    let outstanding = pending.outstanding(now + Duration::from_millis(1500));
    assert_eq!(outstanding.to_string(), "3 creations and 2 deletions since 1.5s");
}
