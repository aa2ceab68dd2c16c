//! Measures allocations of the work queue per key that passes, and memory per key that it holds.
//! `benches/peers/workqueue.sh` runs it, and measures Go's queues too.

use std::alloc::System;
use std::time::Duration;

use anyhow::ensure;
use homeostat_benches::workqueue::{Key, Keys, Work, Workload};
use homeostat_informer::ObjectKey;
use homeostat_workqueue::{Priorities, Queue};
use k8s_openapi::api::core::v1::Pod;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const KEYS: usize = 100_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    show::<ObjectKey<Pod>>("ObjectKey", true).await?;
    show::<String>("String", false).await
}

/// Measures one kind of key. The bytes of the keys exist before and do not count.
async fn show<K: Key>(kind: &str, clone_inside: bool) -> anyhow::Result<()> {
    let keys = Keys::<K>::new(KEYS, clone_inside);
    let cycle = allocations(Workload::Cycle, &keys).await?;
    let ranked = allocations(Workload::PriorityCycle, &keys).await?;
    let burst = allocations(Workload::Burst, &keys).await?;
    print(&format!("ours, {kind}: allocations per key in the steady state"));
    print(&format!("  cycle {cycle:.3}, with priorities {ranked:.3}, bursts of {KEYS} {burst:.3}"));
    let prioritized = Queue::builder().priorities(Priorities::default()).build();
    let queued = held_bytes(&keys, &Queue::new(), Queue::add);
    let ranked = held_bytes(&keys, &prioritized, |queue, key| queue.at_priority(1).add(key));
    let hour = Duration::from_secs(3600);
    let delayed = held_bytes(&keys, &Queue::new(), |queue, key| queue.add_after(key, hour));
    print(&format!("ours, {kind}: bytes per key besides what the key points to"));
    print(&format!("  queued {queued:.1}, with priorities {ranked:.1}, delayed {delayed:.1}"));
    Ok(())
}

/// Returns the allocations per key of a pass that follows equal passes.
async fn allocations<K: Key>(workload: Workload, keys: &Keys<K>) -> anyhow::Result<f64> {
    let mut work = Work::new(workload, keys.clone());
    for _ in 0..3 {
        work.pass(false).await;
    }
    let supply = keys.supply(); // A pass makes one: what that allocates is not the queue's.
    let region = Region::new(ALLOCATOR);
    drop(keys.supply());
    let makes = region.change().allocations;
    drop(supply);
    let region = Region::new(ALLOCATOR);
    let pass = work.pass(false).await;
    let change = region.change();
    ensure!(pass.handed_out == KEYS, "not every key was handed out");
    Ok(per_key(change.allocations + change.reallocations - makes))
}

/// Returns the memory per key of a queue that holds many keys.
fn held_bytes<K: Key>(keys: &Keys<K>, queue: &Queue<K>, add: impl Fn(&Queue<K>, K)) -> f64 {
    let mut made: Vec<K> = keys.as_slice().to_vec();
    let region = Region::new(ALLOCATOR);
    for key in made.drain(..) {
        add(queue, key);
    }
    let change = region.change();
    drop(made);
    per_key(change.bytes_allocated - change.bytes_deallocated)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn per_key(count: usize) -> f64 {
    count as f64 / KEYS as f64
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print(line: &str) {
    println!("{line}");
}
