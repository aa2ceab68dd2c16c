#!/usr/bin/env bash
# The same work on our queue, on client-go's and on controller-runtime's, in turn, with the same keys on
# two cores. Prints medians and ratios, and keeps what every pass took in target/peers/workqueue.jsonl.
#
#   benches/peers/workqueue.sh [--rounds 5] [--keys 100000] [--only cycle]…
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

go=$PWD/target/peers/workqueue
(cd benches/peers/workqueue && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$go" .)
cargo build --release -p homeostat-benches --bin workqueue_peers --bin workqueue_memory
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "compilers: $(rustc --version), $(go version | cut -d' ' -f3)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
target/release/workqueue_peers compare --go "$go" "$@"
target/release/workqueue_memory
for peer in client-go controller-runtime; do
    "$go" --peer "$peer" --workload memory
done
