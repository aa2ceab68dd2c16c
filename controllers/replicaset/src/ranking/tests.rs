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
fn each_rule_decides_if_the_earlier_rules_tie() {
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
fn earlier_rule_overrides_all_later_ones() {
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
fn two_assigned_or_two_unassigned_pods_tie() {
    let elsewhere = |v: &mut Value| v["spec"]["nodeName"] = json!("n2");
    assert_eq!(compare(&base("a", elsewhere), &base("a", |_| {})), Ordering::Equal);
    for unassigned in [json!({}), json!({"nodeName": ""})] {
        let pending = |v: &mut Value| v["spec"] = unassigned.clone();
        let nowhere = |v: &mut Value| v["spec"] = json!({});
        assert_eq!(compare(&base("a", pending), &base("a", nowhere)), Ordering::Equal);
        assert_eq!(compare(&base("z", pending), &base("a", |_| {})), Ordering::Less);
    }
}

#[test]
fn pod_on_the_node_with_more_related_pods_is_first() {
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
    let after = |nanos: i64| {
        let end = Timestamp::MIN + jiff::SignedDuration::from_nanos(nanos);
        age_bucket(Timestamp::MIN, end)
    };
    assert_eq!((after(1 << 62), after(i64::MAX)), (62, 63));
    assert_eq!(age_bucket(Timestamp::MIN, Timestamp::MAX), 63);
    assert_eq!(age_bucket(now() - jiff::SignedDuration::from_nanos(1), now()), 0);
    assert_eq!(age_bucket(now() - jiff::SignedDuration::from_nanos(4), now()), 2);
}

#[test]
fn uid_decides_within_one_magnitude_and_ends_the_rules() {
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
fn later_time_is_first_without_now() {
    let five = base("z", set_ready(Some(5)));
    let eight = base("a", set_ready(Some(8)));
    assert_eq!(compare_at(&five, &eight, None), Ordering::Less);
    let unknown = base("z", set_ready(None));
    assert_eq!(compare_at(&unknown, &five, None), Ordering::Less);
}

#[test]
fn restarts_of_sidecars_break_a_tie() {
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
fn only_plain_numbers_are_deletion_costs() {
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
fn first_pod_to_delete_is_first_in_the_order() {
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

/// Returns a pod of upstream's `TestSortingActivePods`.
fn named(name: &str, node: &str, phase: &str, more: &Value) -> Arc<Pod> {
    let mut value = json!({"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node},
                           "status": {"phase": phase}});
    if !more["ready"].is_null() {
        let since = more["since"].as_i64().map(hours_ago);
        value["status"]["conditions"] =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
    }
    value["status"]["containerStatuses"] = more["restarts"].clone();
    value["metadata"]["creationTimestamp"] = json!(more["created"].as_i64().map(hours_ago));
    if let Some(restarts) = more["sidecar"].as_i64() {
        value["spec"]["initContainers"] = json!([{"name": "sidecar", "restartPolicy": "Always"}]);
        value["status"]["initContainerStatuses"] =
            json!([{"name": "sidecar", "restartCount": restarts}]);
    }
    pod(&value)
}

/// The pods of upstream's `TestSortingActivePods`, in their order.
fn ten_pods() -> Vec<Arc<Pod>> {
    let three = json!([{"restartCount": 3}, {"restartCount": 0}]);
    let two = json!([{"restartCount": 2}, {"restartCount": 1}]);
    let ready = |name, more: Value| {
        let mut more = more;
        more["ready"] = json!(true);
        named(name, "foo", "Running", &more)
    };
    vec![
        named("unscheduled", "", "Pending", &json!({})),
        named("scheduled but pending", "bar", "Pending", &json!({})),
        named("unknown phase", "foo", "Unknown", &json!({})),
        named("running but not ready", "foo", "Running", &json!({})),
        ready("ready without a time", json!({"restarts": three})),
        ready("ready now", json!({"since": 0, "restarts": three})),
        ready("ready for a month", json!({"since": 720, "restarts": three})),
        ready(
            "fewer sidecar restarts",
            json!({"since": 720, "created": 0, "restarts": two, "sidecar": 2}),
        ),
        ready("fewer restarts", json!({"since": 720, "created": 0, "restarts": two})),
        ready("oldest", json!({"since": 720, "created": 720, "restarts": two})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn ten_pods_of_upstream_are_sorted_from_any_order(
        shuffled in Just((0..10).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let pods = ten_pods();
        let shuffled: Vec<_> =
            shuffled.into_iter().map(|index| Arc::clone(&pods[index])).collect();
        let name = |pod: &Arc<Pod>| pod.metadata.name.clone();
        let sorted: Vec<_> =
            sort_for_deletion(shuffled, |_| 0, true, None).iter().map(name).collect();
        prop_assert_eq!(sorted, pods.iter().map(name).collect::<Vec<_>>());
    }
}

/// Returns a ready pod of upstream's `TestSortingActivePodsWithRanks`: ready since and created this
/// number of hours ago.
fn ready_pod(
    since: Option<i64>,
    created: Option<i64>,
    change: impl FnOnce(&mut Value),
) -> Arc<Pod> {
    base("same", |v| {
        set_ready(since)(v);
        v["metadata"]["creationTimestamp"] = json!(created.map(hours_ago));
        change(v);
    })
}

/// Upstream's `TestSortingActivePodsWithRanks`: each pod comes before the other one, with these
/// numbers of related pods on its node.
#[test]
fn pairs_of_upstream_are_ordered() {
    let other = |node, phase| named("same", node, phase, &json!({}));
    let unscheduled = || other("", "Pending");
    let pending = || other("node", "Pending");
    let unknown = || other("node", "Unknown");
    let not_ready = || other("node", "Running");
    let without_time = || ready_pod(None, None, |_| {});
    let now_and = |created| ready_pod(Some(0), Some(created), |_| {});
    let then = || ready_pod(Some(720), Some(720), |_| {});
    let restarted = |sidecar: i32| {
        ready_pod(Some(0), Some(0), move |v| {
            v["spec"]["initContainers"] = json!([{"name": "s", "restartPolicy": "Always"}]);
            v["status"]["containerStatuses"] = json!([{"restartCount": 9001}]);
            v["status"]["initContainerStatuses"] = json!([{"name": "s", "restartCount": sidecar}]);
        })
    };
    let cost = |cost| ready_pod(Some(0), Some(720), set_cost(cost));
    let since = |hours| ready_pod(Some(hours), Some(720), |_| {});
    let pairs = [
        ((unscheduled(), 1), (pending(), 2)),
        ((unscheduled(), 2), (pending(), 1)),
        ((pending(), 1), (unknown(), 2)),
        ((unknown(), 1), (not_ready(), 2)),
        ((not_ready(), 1), (without_time(), 1)),
        ((without_time(), 1), (now_and(0), 1)),
        ((now_and(0), 2), (without_time(), 1)),
        ((now_and(0), 1), (then(), 1)),
        ((now_and(0), 2), (then(), 1)),
        ((restarted(0), 1), (now_and(0), 1)),
        ((restarted(9001), 1), (restarted(0), 1)),
        ((now_and(0), 2), (restarted(0), 1)),
        ((now_and(0), 1), (now_and(720), 1)),
        ((now_and(720), 2), (now_and(0), 1)),
        ((cost("10"), 2), (cost("100"), 1)),
        ((since(2), 1), (since(5), 1)),
    ];
    for (index, ((first, rank), (second, second_rank))) in pairs.iter().enumerate() {
        let (first, second) =
            (Facts::of(first, *rank, true), Facts::of(second, *second_rank, true));
        assert_eq!(first.compare(&second, Some(now())), Ordering::Less, "pair {index}");
        assert_eq!(second.compare(&first, Some(now())), Ordering::Greater, "pair {index}");
    }
    let (dear, cheap) = (cost("100"), cost("10"));
    let without_costs = Facts::of(&dear, 2, false).compare(&Facts::of(&cheap, 1, false), None);
    assert_eq!(without_costs, Ordering::Less, "the gate is off");
    let waiting = |hours: i64| named("same", "", "Pending", &json!({"created": hours}));
    let equal = [(waiting(5), waiting(8)), (since(5), since(8)), (now_and(720), now_and(720))];
    for (one, same) in equal {
        assert_eq!(compare(&one, &same), Ordering::Equal);
    }
}

#[test]
fn circular_order_is_sorted_without_a_panic() {
    // p and q differ in time and share a magnitude: the uid says p. q and s share a time: restarts
    // say q. s and p differ in time and share a magnitude: the uid says s.
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
fn ratios_compare_ages_since_creation_with_the_youngest_ready_pod() {
    let aged = |uid: &str, hours: i64, is_ready: bool| {
        base(uid, move |v| {
            v["status"]["conditions"][0]["status"] = json!(if is_ready { "True" } else { "False" });
            v["metadata"]["creationTimestamp"] = json!(hours_ago(hours));
        })
    };
    let (old, older) = (aged("a", 4, true), aged("b", 9, true));
    let (young, unready) = (aged("c", 2, true), aged("d", 1, false));
    let active = [old.clone(), older.clone(), young, unready.clone()];
    assert_eq!(age_ratios(&[old, older, unready], &active, now()), [2.0, 4.0]);
    assert!(age_ratios(&[], &[], now()).is_empty());
}

proptest! {
    #[test]
    fn merge_sort_agrees_with_std_on_a_total_order(items: Vec<(u8, u16)>) {
        let (mut ours, mut theirs) = (items.clone(), items);
        merge_sort(&mut ours, &|p, q| p.0.cmp(&q.0));
        theirs.sort_by_key(|it| it.0);
        prop_assert_eq!(ours, theirs, "stable, and in order");
    }

    #[test]
    fn merge_sort_keeps_all_items_for_any_comparison(
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
    fn neighbours_respect_the_rules_if_no_time_is_compared(
        pods in proptest::collection::vec(
            (any::<bool>(), 0_usize..4, any::<bool>(), -3_i32..3, 0_i32..3), 0..60),
    ) {
        let pods = pods.into_iter().map(|(assigned, phase, ready, cost, restarts)| pod(&json!({
            "metadata": {"annotations": {DELETION_COST: cost.to_string()}},
            "spec": {"nodeName": if assigned { "n" } else { "" }},
            "status": {
                "phase": (["Pending", "Running", "Unknown", "?"][phase]),
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
                "containerStatuses": [{"restartCount": restarts}],
            },
        })));
        let pods: Vec<_> = pods.collect();
        let sorted = sort_for_deletion(pods, |_| 0, true, Some(now()));
        for pair in sorted.windows(2) {
            prop_assert!(compare(&pair[0], &pair[1]).is_le());
        }
    }
}
