use super::*;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn wall(seconds: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap()
}

fn candidate(identity: &str) -> Candidate {
    Candidate::new(identity.to_owned(), TIMING)
}

fn held_by(holder: &str, lease_seconds: i32) -> Stored {
    let record =
        Record { holder: holder.to_owned(), lease_seconds, transitions: 3, ..Record::default() };
    Stored { record, version: "7".to_owned() }
}

/// A candidate that created the lease at second 0, and the lease.
fn leader() -> (Candidate, Stored) {
    let mut candidate = candidate("a");
    assert_eq!(candidate.begin(at(0), wall(0)), Step::Read);
    let Step::Create(record) = candidate.read(None, at(0), wall(0)) else { panic!("creates") };
    let stored = Written::Stored("1".to_owned());
    assert_eq!(candidate.written(stored, at(0), at(1)), Step::Leading);
    (candidate, Stored { record, version: "1".to_owned() })
}

#[test]
fn absent_lease_is_created_with_the_configured_duration() {
    let (_, lease) = leader();
    assert_eq!((lease.record.holder.as_str(), lease.record.lease_seconds), ("a", 15));
    assert_eq!(lease.record.transitions, 0);
    assert_eq!((lease.record.acquired, lease.record.renewed), (Some(wall(0)), Some(wall(0))));
}

#[test]
fn deadline_counts_from_the_start_of_the_request() {
    let mut candidate = candidate("a");
    candidate.read(None, at(0), wall(0));
    // Sent at 0, answered at 4.
    assert_eq!(candidate.written(Written::Stored("1".into()), at(0), at(4)), Step::Leading);
    assert!(candidate.is_leader(at(9)));
    assert!(!candidate.is_leader(at(10)));
}

#[test]
fn answer_after_the_deadline_gives_no_leadership() {
    let mut candidate = candidate("a");
    candidate.read(None, at(0), wall(0));
    assert_eq!(candidate.written(Written::Stored("1".into()), at(0), at(10)), Step::Waiting);
    assert!(!candidate.is_leader(at(10)));
}

#[test]
fn candidate_whose_answer_came_after_the_deadline_tries_again() {
    let mut candidate = candidate("a");
    let Step::Create(record) = candidate.read(None, at(0), wall(0)) else { panic!("creates") };
    assert_eq!(candidate.written(Written::Stored("1".into()), at(0), at(10)), Step::Waiting);
    assert_eq!(candidate.begin(at(12), wall(12)), Step::Read);
    let stored = Stored { record, version: "1".to_owned() };
    let step = candidate.read(Some(stored), at(12), wall(12));
    assert!(matches!(step, Step::Replace { .. }), "{step:?}");
    assert_eq!(candidate.written(Written::Stored("2".into()), at(12), at(12)), Step::Leading);
}

#[test]
fn renewal_that_is_answered_after_the_deadline_revives_no_leadership() {
    let (mut candidate, _) = leader();
    let step = candidate.begin(at(9), wall(9));
    assert!(matches!(step, Step::Replace { .. }), "{step:?}");
    assert_eq!(candidate.written(Written::Stored("2".into()), at(9), at(10)), Step::Waiting);
    assert!(!candidate.is_leader(at(10)));
}

#[test]
fn renewal_keeps_acquire_time_and_transitions() {
    let (mut candidate, lease) = leader();
    let Step::Replace { record, version } = candidate.begin(at(2), wall(2)) else {
        panic!("renews")
    };
    assert_eq!(version, "1");
    assert_eq!(record, Record { renewed: Some(wall(2)), ..lease.record });
}

#[test]
fn candidate_waits_for_the_lease_of_another_from_when_it_saw_the_change() {
    let mut candidate = candidate("b");
    assert_eq!(candidate.read(Some(held_by("a", 15)), at(100), wall(100)), Step::Waiting);
    assert_eq!(candidate.read(Some(held_by("a", 15)), at(114), wall(114)), Step::Waiting);
    let step = candidate.read(Some(held_by("a", 15)), at(115), wall(115));
    let Step::Replace { record, version } = step else { panic!("takes over: {step:?}") };
    assert_eq!((record.holder.as_str(), record.transitions, version.as_str()), ("b", 4, "7"));
    assert_eq!(record.acquired, Some(wall(115)));
}

#[test]
fn renewal_of_another_starts_the_wait_anew() {
    let mut candidate = candidate("b");
    candidate.read(Some(held_by("a", 15)), at(100), wall(100));
    let renewed = Stored { version: "8".to_owned(), ..held_by("a", 15) };
    assert_eq!(candidate.read(Some(renewed.clone()), at(110), wall(110)), Step::Waiting);
    assert_eq!(candidate.read(Some(renewed), at(124), wall(124)), Step::Waiting);
}

#[test]
fn released_lease_is_taken_at_once() {
    let mut candidate = candidate("b");
    let step = candidate.read(Some(held_by("", 1)), at(0), wall(0));
    assert!(matches!(step, Step::Replace { .. }), "{step:?}");
}

#[test]
fn senseless_duration_of_another_does_not_lead_to_an_early_takeover() {
    for (seconds, free_at) in [(0, 15), (-1, 15), (i32::MIN, 15), (40, 40)] {
        let mut candidate = candidate("b");
        candidate.read(Some(held_by("a", seconds)), at(0), wall(0));
        let before = candidate.read(Some(held_by("a", seconds)), at(free_at - 1), wall(0));
        assert_eq!(before, Step::Waiting, "{seconds}");
        let after = candidate.read(Some(held_by("a", seconds)), at(free_at), wall(0));
        assert!(matches!(after, Step::Replace { .. }), "{seconds}");
    }
    let mut candidate = candidate("b");
    candidate.read(Some(held_by("a", i32::MAX)), at(0), wall(0));
    let later = Duration::from_secs(60 * 365 * 86_400);
    assert_eq!(candidate.read(Some(held_by("a", i32::MAX)), later, wall(0)), Step::Waiting);
}

#[test]
fn vanished_lease_of_another_stays_held_until_it_would_have_expired() {
    let mut candidate = candidate("b");
    candidate.read(Some(held_by("a", 15)), at(0), wall(0));
    assert_eq!(candidate.read(None, at(14), wall(14)), Step::Waiting);
    assert!(matches!(candidate.read(None, at(15), wall(15)), Step::Create(_)));
}

#[test]
fn leader_creates_its_lease_again_when_it_vanished() {
    let (mut candidate, _) = leader();
    candidate.begin(at(2), wall(2));
    assert_eq!(candidate.written(Written::Conflict, at(2), at(2)), Step::Read);
    assert!(matches!(candidate.read(None, at(2), wall(2)), Step::Create(_)));
}

#[test]
fn leader_that_reads_another_holder_loses_at_once() {
    let (mut candidate, _) = leader();
    candidate.begin(at(2), wall(2));
    assert_eq!(candidate.written(Written::Conflict, at(2), at(2)), Step::Read);
    let step = candidate.read(Some(held_by("b", 15)), at(2), wall(2));
    assert_eq!(step, Step::Lost(Loss::TakenBy("b".to_owned())));
    assert!(!candidate.is_leader(at(2)));
}

#[test]
fn leader_renews_after_another_party_changed_only_labels() {
    let (mut candidate, lease) = leader();
    candidate.begin(at(2), wall(2));
    candidate.written(Written::Conflict, at(2), at(2));
    let labelled = Stored { version: "2".to_owned(), ..lease };
    let step = candidate.read(Some(labelled), at(2), wall(2));
    assert!(matches!(&step, Step::Replace { version, .. } if version == "2"), "{step:?}");
}

#[test]
fn renewals_whose_answers_were_lost_are_recognised() {
    let (mut candidate, _) = leader();
    let Step::Replace { record: lost, .. } = candidate.begin(at(2), wall(2)) else { panic!() };
    assert_eq!(candidate.written(Written::Failed, at(2), at(4)), Step::Waiting);
    // The server has stored it: the next renewal conflicts.
    candidate.begin(at(4), wall(4));
    assert_eq!(candidate.written(Written::Conflict, at(4), at(4)), Step::Read);
    let stored = Stored { record: lost, version: "2".to_owned() };
    let step = candidate.read(Some(stored), at(4), wall(4));
    assert!(matches!(step, Step::Replace { .. }), "{step:?}");
    assert!(candidate.is_leader(at(9)) && !candidate.is_leader(at(10)), "nothing was confirmed");
}

#[test]
fn acquisition_whose_answer_was_lost_is_recognised() {
    let mut candidate = candidate("a");
    let Step::Create(record) = candidate.read(None, at(0), wall(0)) else { panic!() };
    assert_eq!(candidate.written(Written::Failed, at(0), at(5)), Step::Waiting);
    let stored = Stored { record, version: "1".to_owned() };
    let step = candidate.read(Some(stored), at(6), wall(6));
    assert!(matches!(step, Step::Replace { .. }), "{step:?}");
}

#[test]
fn identity_that_another_process_uses_ends_leadership() {
    let (mut candidate, lease) = leader();
    candidate.begin(at(2), wall(2));
    candidate.written(Written::Conflict, at(2), at(2));
    let record = Record { renewed: Some(wall(77)), ..lease.record };
    let step = candidate.read(Some(Stored { record, version: "2".into() }), at(2), wall(2));
    assert_eq!(step, Step::Lost(Loss::SharedIdentity));
}

#[test]
fn release_empties_the_holder_and_keeps_the_transitions() {
    let (mut candidate, _) = leader();
    let (record, version) = candidate.release(wall(5)).unwrap();
    assert_eq!((record.holder.as_str(), record.lease_seconds, record.transitions), ("", 1, 0));
    assert_eq!(version, "1");
    assert!(!candidate.is_leader(at(5)));
}

#[test]
fn lease_of_another_is_not_released() {
    let (mut candidate, _) = leader();
    assert_eq!(candidate.read_for_release(held_by("b", 15), at(5), wall(5)), None);
}

#[test]
fn fractions_of_a_second_are_rounded_up_in_the_lease() {
    assert_eq!(record::seconds(Duration::from_millis(1_500)), 2);
    assert_eq!(record::seconds(Duration::from_secs(15)), 15);
    assert_eq!(record::seconds(Duration::MAX), i32::MAX);
}
