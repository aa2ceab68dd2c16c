#!/usr/bin/env bash
# The parts of an informer, each by itself, beside client-go's: queue, store, index, list, and a write during
# a list. Then our writes beside a thread that reads all objects by namespace, index or label. Then the memory
# of a ReplicaSet controller that has 100,000 pods in its cache, beside kube-controller-manager's. Prints medians
# and ratios in Markdown. Three rounds take about five minutes.
#
#   benches/peers/informer-parts.sh [--rounds 3]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
go=$PWD/target/peers/informer
mkdir -p target/peers
(cd benches/peers/informer && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$go" .)
cargo build --release -p homeostat-replicaset --bin homeostat-replicaset
cargo build --release -p homeostat-benches --bin informer_peers
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "compilers: $(rustc --version), $(go version | cut -d' ' -f3)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
target/release/informer_peers compare-parts --go "$go" "$@"
echo
target/release/informer_peers readers
echo
exec target/release/informer_peers controllers --go "$go" --homeostat target/release/homeostat-replicaset \
    --controller-manager "$KUBEBUILDER_ASSETS/kube-controller-manager" "$@"
