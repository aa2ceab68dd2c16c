//! Runs the crate's own files under every interleaving of their locks, up to a number of
//! preemptions.
//!
//! ```sh
//! RUSTFLAGS="--cfg homeostat_loom" \
//!     cargo test -p homeostat-expectations --test loom --target-dir target/loom
//! ```
#![cfg(homeostat_loom)]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness, UidTrackingExpectations};
use loom::thread::{self, JoinHandle};

const OWNER: u8 = 1;

/// Runs the model under every interleaving with at most `bound` preemptions, and panics if there
/// are fewer than `least` executions. `LOOM_MAX_PREEMPTIONS` overrides the bound.
#[expect(clippy::print_stdout, reason = "prints the number of executions")]
fn explore(name: &str, bound: usize, least: usize, model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    let explored = *builder.preemption_bound.get_or_insert(bound);
    let counter = Arc::clone(&executions);
    builder.check(move || {
        counter.fetch_add(1, SeqCst);
        model();
    });
    let executions = executions.load(SeqCst);
    println!("loom: {name}: {executions} executions, at most {explored} preemptions");
    assert!(executions >= least || explored < bound, "{name}: only {executions} executions");
}

type Expectations = UidTrackingExpectations<char, u8>;

fn go(body: impl FnOnce() + 'static) -> JoinHandle<()> {
    thread::spawn(body)
}

fn join_all<const N: usize>(threads: [JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().expect("it does not panic");
    }
}

#[test]
fn key_is_satisfied_by_the_last_of_several_requests_and_not_before() {
    explore("observed, refused and checked", 3, 50, || {
        let expectations = Expectations::default();
        let guard = expectations.expect_creations(&'a', &OWNER, 3);
        let tokens = [guard.start(), guard.start()];
        let still = guard.start();
        let observed = {
            let expectations = expectations.clone();
            go(move || expectations.creation_observed(&'a', &OWNER))
        };
        let refused = {
            let [first, second] = tokens;
            go(move || {
                first.sent();
                second.refused();
            })
        };
        assert!(!expectations.satisfied(&'a', &OWNER), "the third request is not answered");
        join_all([observed, refused]);
        let outstanding = expectations.outstanding(&'a', &OWNER).expect("the key has an entry");
        assert_eq!(outstanding.creations, 1, "each request lowers once");
        still.refused();
        assert!(expectations.satisfied(&'a', &OWNER));
    });
}

#[test]
fn tokens_taken_while_the_guard_is_dropped_lower_each_request_once() {
    explore("concurrent tokens, then the guard", 3, 14, || {
        let expectations = Expectations::default();
        let guard = Arc::new(expectations.expect_creations(&'a', &OWNER, 3));
        let starters = [(), ()].map(|()| {
            let guard = Arc::clone(&guard);
            // The outcome is unknown: the request of a dropped token stays expected.
            go(move || drop(guard.start()))
        });
        drop(guard);
        join_all(starters);
        let outstanding = expectations.outstanding(&'a', &OWNER).expect("the key has an entry");
        assert_eq!(outstanding.creations, 2, "only the request that was never started is lowered");
    });
}

#[test]
fn deletion_observed_while_its_token_is_refused_counts_once() {
    explore("one deletion, lowered by three threads", 3, 150, || {
        let expectations = Expectations::default();
        let guard = expectations.expect_deletions(&'a', &OWNER, [7, 8, 9]);
        let (token, unknown) = (guard.start(&7), guard.start(&9));
        let observed = {
            let expectations = expectations.clone();
            go(move || {
                expectations.deletion_observed(&'a', &OWNER, &7);
                expectations.deletion_observed(&'a', &OWNER, &8);
            })
        };
        let refused = go(move || token.refused());
        drop(guard);
        drop(unknown);
        assert!(!expectations.satisfied(&'a', &OWNER), "the outcome of the third is unknown");
        join_all([observed, refused]);
        let outstanding = expectations.outstanding(&'a', &OWNER).expect("the key has an entry");
        assert_eq!(outstanding.deletions, 1);
    });
}

#[test]
fn guard_dropped_while_its_entry_is_replaced_lowers_only_its_own() {
    explore("guard and its successor", 3, 50, || {
        let expectations = Expectations::default();
        let old = expectations.expect_creations(&'a', &OWNER, 2);
        let token = old.start();
        let threads = [go(move || drop(old)), go(move || token.refused())];
        let new = expectations.expect_creations(&'a', &OWNER, 2);
        let (one, two) = (new.start(), new.start());
        one.sent();
        two.sent();
        drop(new);
        join_all(threads);
        let outstanding = expectations.outstanding(&'a', &OWNER).expect("the key has an entry");
        assert_eq!(outstanding.creations, 2, "the old guard does not lower the new entry");
    });
}

#[test]
fn reader_never_sees_half_of_a_change() {
    explore("replaced while it is read", 3, 4, || {
        let expectations = Expectations::default();
        drop(expectations.expect_creations(&'a', &OWNER, 1).start());
        let replaced = {
            let expectations = expectations.clone();
            go(move || {
                let guard = expectations.expect_deletions(&'a', &OWNER, [7, 8]);
                drop((guard.start(&7), guard.start(&8)));
            })
        };
        let read = expectations.outstanding(&'a', &OWNER).expect("the key has an entry");
        assert!(matches!((read.creations, read.deletions), (1, 0) | (0, 2)), "{read}");
        join_all([replaced]);
    });
}

// === consistency store: each key that waits is woken ===

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn sets() -> GroupResource {
    GroupResource::new("apps", "replicasets")
}

/// Returns a store whose caches both show version 1.
fn store() -> ConsistencyStore<char, u8> {
    let store = ConsistencyStore::new("model", [pods(), sets()]);
    assert!(store.reached(&pods(), "1").is_empty());
    assert!(store.reached(&sets(), "1").is_empty());
    store
}

fn has_to_wait(store: &ConsistencyStore<char, u8>) -> bool {
    match store.ready(&'a', &OWNER) {
        Readiness::Ready => false,
        Readiness::Waiting { .. } | Readiness::Overdue { .. } => true,
    }
}

/// Advances a cache in its own thread, and adds the number of woken keys to `woken`.
fn reaches(
    store: &ConsistencyStore<char, u8>,
    (resource, versions): (GroupResource, &'static [&'static str]),
    woken: &Arc<AtomicUsize>,
) -> JoinHandle<()> {
    let (store, woken) = (store.clone(), Arc::clone(woken));
    go(move || {
        for version in versions {
            woken.fetch_add(store.reached(&resource, version).len(), SeqCst);
        }
    })
}

#[test]
fn key_that_waits_while_the_cache_advances_is_woken_once() {
    explore("written, checked and shown", 3, 10, || {
        let (store, woken) = (store(), Arc::default());
        let informer = reaches(&store, (pods(), &["2", "3"]), &woken);
        store.wrote_at(&'a', &OWNER, &pods(), "2");
        let waits = has_to_wait(&store);
        join_all([informer]);
        assert_eq!(woken.load(SeqCst), usize::from(waits));
        assert!(!has_to_wait(&store), "the cache shows it");
    });
}

#[test]
fn key_that_waits_for_two_caches_is_woken_by_the_last() {
    explore("two caches advance", 3, 200, || {
        let (store, woken) = (store(), Arc::default());
        store.wrote_at(&'a', &OWNER, &pods(), "2");
        let informers = [
            reaches(&store, (pods(), &["2", "3"]), &woken),
            reaches(&store, (sets(), &["2", "3"]), &woken),
        ];
        store.wrote_at(&'a', &OWNER, &sets(), "3");
        let waits = has_to_wait(&store);
        join_all(informers);
        assert_eq!(woken.load(SeqCst), usize::from(waits));
        assert!(!has_to_wait(&store), "both caches show it");
    });
}

#[test]
fn key_that_waits_for_a_lost_version_is_woken_by_the_restore() {
    explore("written, checked and restored", 3, 10, || {
        let (store, woken) = (store(), Arc::default());
        assert!(store.reached(&pods(), "5").is_empty());
        let informer = reaches(&store, (pods(), &["3", "4"]), &woken);
        store.wrote_at(&'a', &OWNER, &pods(), "6");
        let waits = has_to_wait(&store);
        join_all([informer]);
        // A write before the restore is woken by the restore. After it, the write belongs to the
        // new history, which has not reached its version yet.
        let (woken, still) = (woken.load(SeqCst), has_to_wait(&store));
        assert_eq!(usize::from(waits), woken + usize::from(still && waits && woken == 0));
        assert_eq!(store.reached(&pods(), "6").len(), usize::from(still));
    });
}
