#!/usr/bin/env bash
# 100,000 pods and then 50,000 updates of them, kept by our informer, by client-go's and by kube-runtime's
# reflector, in turn, from the same server. Prints medians and ratios in Markdown, and keeps what every run
# took in target/peers/informer.jsonl. Three rounds take about twelve minutes, and 13 GB of memory.
#
#   benches/peers/informer.sh [--rounds 3] [--pods 100000] [--one-core] [--only 'ours']…
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

go=$PWD/target/peers/informer
mkdir -p target/peers
kube=benches/peers/kube-runtime
(cd benches/peers/informer && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$go" .)
cargo build --release --locked --manifest-path "$kube/Cargo.toml" --target-dir target/peers/kube-runtime
cargo build --release -p homeostat-benches --bin informer_peers --bin informer_system
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "compilers: $(rustc --version), $(go version | cut -d' ' -f3)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
exec target/release/informer_peers compare --go "$go" \
    --kube-runtime target/peers/kube-runtime/release/kube-runtime-peer "$@"
