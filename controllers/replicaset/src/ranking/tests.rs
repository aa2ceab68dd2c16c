use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-06-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn hours_ago(hours: i64) -> String {
    (now() - jiff::SignedDuration::from_hours(hours)).to_string()
}

fn pod(value: &Value) -> Arc<Pod> {
    Arc::new(serde_json::from_str(&value.to_string()).unwrap())
}

/// A pod that every rule finds equal to its like; `change` makes the difference.
fn base(uid: &str, change: impl FnOnce(&mut Value)) -> Arc<Pod> {
    let mut value = json!({
        "metadata": {"uid": uid, "creationTimestamp": hours_ago(100), "annotations": {}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": hours_ago(90)}]},
    });
    change(&mut value);
    pod(&value)
}

fn compare_at(p: &Pod, q: &Pod, now: Option<Timestamp>) -> Ordering {
    let (a, b) = (Facts::of(p, 0, true), Facts::of(q, 0, true));
    let (there, back) = (a.compare(&b, now), b.compare(&a, now));
    assert_eq!(there, back.reverse());
    there
}

fn compare(p: &Pod, q: &Pod) -> Ordering {
    compare_at(p, q, Some(now()))
}

#[track_caller]
fn goes_first(first: impl FnOnce(&mut Value), second: impl FnOnce(&mut Value)) {
    // The uids say the opposite, so that they cannot be what decided.
    assert_eq!(compare(&base("z", first), &base("a", second)), Ordering::Less);
}

fn set_cost(cost: &str) -> impl FnOnce(&mut Value) {
    let cost = cost.to_owned();
    move |v| v["metadata"]["annotations"][DELETION_COST] = json!(cost)
}

fn set_ready(hours: Option<i64>) -> impl FnOnce(&mut Value) {
    move |v| v["status"]["conditions"][0]["lastTransitionTime"] = json!(hours.map(hours_ago))
}

#[test]
fn each_rule_decides_when_those_before_it_tie() {
    goes_first(|v| v["spec"]["nodeName"] = json!(""), |_| {});
    goes_first(
        |v| v["status"]["phase"] = json!("Pending"),
        |v| v["status"]["phase"] = json!("Unknown"),
    );
    goes_first(|v| v["status"]["phase"] = json!("Unknown"), |_| {});
    goes_first(
        |v| v["status"]["phase"] = json!("New"),
        |v| v["status"]["phase"] = json!("Unknown"),
    );
    goes_first(|v| v["status"]["conditions"][0]["status"] = json!("False"), |_| {});
    goes_first(set_cost("-1"), |_| {});
    goes_first(|_| {}, set_cost("1"));
    goes_first(set_ready(None), |_| {});
    goes_first(set_ready(Some(2)), set_ready(Some(5)));
    goes_first(
        |v| v["status"]["containerStatuses"] = json!([{"restartCount": 0}, {"restartCount": 2}]),
        |v| v["status"]["containerStatuses"] = json!([{"restartCount": 1}]),
    );
    goes_first(|v| v["metadata"]["creationTimestamp"] = json!(null), |_| {});
    goes_first(|v| v["metadata"]["creationTimestamp"] = json!(hours_ago(30)), |_| {});
}

#[test]
fn an_earlier_rule_beats_all_later_ones() {
    // Unassigned, but Running, ready and dear: rule 1 decides.
    goes_first(
        |v| {
            v["spec"]["nodeName"] = json!(null);
            set_cost("100")(v);
        },
        |v| v["status"] = json!({"phase": "Pending"}),
    );
}

#[test]
fn two_nodes_or_no_node_at_all_are_a_tie() {
    let elsewhere = |v: &mut Value| v["spec"]["nodeName"] = json!("n2");
    assert_eq!(compare(&base("a", elsewhere), &base("a", |_| {})), Ordering::Equal);
}

#[test]
fn the_more_crowded_node_loses_a_pod_first() {
    let (p, q) = (base("z", |_| {}), base("a", |_| {}));
    let ranked = |p: &Arc<Pod>, rank| Facts::of(p, rank, true).rank;
    assert_eq!(ranked(&p, 4), 4);
    assert_eq!(
        Facts::of(&p, 4, true).compare(&Facts::of(&q, 3, true), Some(now())),
        Ordering::Less
    );
}

#[test]
fn ages_are_compared_by_magnitude() {
    let bucket = |hours| age_bucket(now() - jiff::SignedDuration::from_hours(hours), now());
    assert_eq!((bucket(2), bucket(5), bucket(8)), (42, 44, 44));
    assert_eq!(bucket(0), -1);
    assert_eq!(bucket(-1), -1);
    assert_eq!(age_bucket(Timestamp::MIN, Timestamp::MAX), 62);
    assert_eq!(age_bucket(now() - jiff::SignedDuration::from_nanos(1), now()), 0);
    assert_eq!(age_bucket(now() - jiff::SignedDuration::from_nanos(4), now()), 2);
}

#[test]
fn within_one_magnitude_the_uid_decides_and_the_rules_stop() {
    let five = base("a", |v| {
        set_ready(Some(5))(v);
        v["status"]["containerStatuses"] = json!([{"restartCount": 0}]);
    });
    let eight = base("b", |v| {
        set_ready(Some(8))(v);
        v["status"]["containerStatuses"] = json!([{"restartCount": 9}]);
    });
    assert_eq!(compare(&five, &eight), Ordering::Less, "restarts are not asked");
    let twin = base("a", set_ready(Some(8)));
    assert_eq!(compare(&five, &twin), Ordering::Equal);
}

#[test]
fn without_a_now_the_later_time_goes_first() {
    let five = base("z", set_ready(Some(5)));
    let eight = base("a", set_ready(Some(8)));
    assert_eq!(compare_at(&five, &eight, None), Ordering::Less);
    let unknown = base("z", set_ready(None));
    assert_eq!(compare_at(&unknown, &five, None), Ordering::Less);
}

#[test]
fn a_sidecars_restarts_break_the_tie_of_regular_ones() {
    let with = |restarts: i32| {
        base("a", move |v| {
            v["spec"]["initContainers"] = json!([{"name": "s", "restartPolicy": "Always"}]);
            v["status"]["initContainerStatuses"] = json!([{"name": "s", "restartCount": restarts}]);
        })
    };
    assert_eq!(compare(&with(2), &with(1)), Ordering::Less);
    let no_sidecar = base("a", |v| {
        v["spec"]["initContainers"] = json!([{"name": "s"}]);
        v["status"]["initContainerStatuses"] = json!([{"name": "s", "restartCount": 9}]);
    });
    assert_eq!(compare(&no_sidecar, &with(1)), Ordering::Greater);
}

#[test]
fn only_plain_numbers_are_costs() {
    let cost = |text: &str| deletion_cost(&base("a", set_cost(text)));
    assert_eq!(cost("0"), 0);
    assert_eq!(cost("7"), 7);
    assert_eq!(cost("-7"), -7);
    assert_eq!(cost("-07"), -7, "upstream asks only that the first byte is a minus");
    assert_eq!(cost("2147483647"), i32::MAX);
    for none in ["+7", "07", "", "2147483648", "1.5", "many", " 1", "1 ", "-", "--1"] {
        assert_eq!(cost(none), 0, "{none:?}");
    }
    assert_eq!(Facts::of(&base("a", set_cost("7")), 0, false).cost, 0, "the gate is off");
}

#[test]
fn what_goes_first_comes_first() {
    let pods = vec![
        base("running", |_| {}),
        base("pending", |v| v["status"] = json!({"phase": "Pending"})),
        base("unassigned", |v| {
            v["spec"] = json!({});
            v["status"] = json!({"phase": "Pending"});
        }),
        base("costly", set_cost("9")),
    ];
    let sorted = sort_for_deletion(pods, |_| 0, true, Some(now()));
    let uids: Vec<_> = sorted.iter().map(|pod| pod.metadata.uid.as_deref().unwrap()).collect();
    assert_eq!(uids, ["unassigned", "pending", "running", "costly"]);
}

#[test]
fn pods_that_beat_each_other_in_a_circle_are_sorted_without_harm() {
    // p and q differ in time and share a magnitude: the uid says p. q and s share a time: restarts say q.
    // s and p differ in time and share a magnitude: the uid says s.
    let make = |uid: &str, hours, restarts: i32| {
        base(uid, move |v| {
            set_ready(Some(hours))(v);
            v["status"]["containerStatuses"] = json!([{"restartCount": restarts}]);
        })
    };
    let (p, q, s) = (make("b", 5, 0), make("c", 8, 9), make("a", 8, 0));
    assert_eq!(compare(&p, &q), Ordering::Less);
    assert_eq!(compare(&q, &s), Ordering::Less);
    assert_eq!(compare(&s, &p), Ordering::Less);
    let many: Vec<_> = (0..300).map(|i| [&p, &q, &s][i % 3].clone()).collect();
    assert_eq!(sort_for_deletion(many, |_| 0, true, Some(now())).len(), 300);
}

#[test]
fn ratios_count_in_ages_of_the_youngest() {
    let chosen = [base("a", set_ready(Some(1))), base("b", set_ready(Some(5)))];
    assert_eq!(age_ratios(chosen.iter().map(AsRef::as_ref), now()), [1, 5]);
    let newborn = [base("a", set_ready(Some(0)))];
    assert_eq!(age_ratios(newborn.iter().map(AsRef::as_ref), now()), [0]);
    assert!(age_ratios([].into_iter(), now()).is_empty());
}

proptest! {
    #[test]
    fn the_merge_sort_agrees_with_std_on_a_total_order(items: Vec<(u8, u16)>) {
        let (mut ours, mut theirs) = (items.clone(), items);
        merge_sort(&mut ours, &|p, q| p.0.cmp(&q.0));
        theirs.sort_by_key(|it| it.0);
        prop_assert_eq!(ours, theirs, "stable, and in order");
    }

    #[test]
    fn the_merge_sort_ends_with_what_it_was_given_whatever_it_is_told(
        len in 0_usize..200,
        answers in proptest::collection::vec(-1_i8..=1, 1..64),
    ) {
        let asked = std::cell::Cell::new(0);
        let mut items: Vec<usize> = (0..len).collect();
        merge_sort(&mut items, &|_, _| {
            asked.set(asked.get() + 1);
            answers[asked.get() % answers.len()].cmp(&0)
        });
        prop_assert!(asked.get() <= len * (usize::BITS - len.leading_zeros()) as usize);
        items.sort_unstable();
        prop_assert_eq!(items, (0..len).collect::<Vec<_>>());
    }

    #[test]
    fn neighbours_respect_the_rules_wherever_no_time_is_involved(
        pods in proptest::collection::vec((any::<bool>(), 0_usize..4, any::<bool>(), -3_i32..3, 0_i32..3), 0..60),
    ) {
        let pods: Vec<_> = pods.into_iter().map(|(assigned, phase, ready, cost, restarts)| pod(&json!({
            "metadata": {"annotations": {DELETION_COST: cost.to_string()}},
            "spec": {"nodeName": if assigned { "n" } else { "" }},
            "status": {
                "phase": (["Pending", "Running", "Unknown", "?"][phase]),
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
                "containerStatuses": [{"restartCount": restarts}],
            },
        }))).collect();
        let sorted = sort_for_deletion(pods, |_| 0, true, Some(now()));
        for pair in sorted.windows(2) {
            prop_assert!(compare(&pair[0], &pair[1]).is_le());
        }
    }
}
