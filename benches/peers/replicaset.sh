#!/usr/bin/env bash
# A ReplicaSet of 1,000 replicas up and down, 1,000 ReplicaSets of 3, and 400 of their pods deleted at 40 per second, by
# kube-controller-manager and by homeostat-replicaset, in turn, beside a fresh etcd and kube-apiserver each time. Prints
# CPU time, memory, requests, wall time, and the time from a deletion to the pod that replaces it.
#
#   benches/peers/replicaset.sh [--rounds 3] [--percent 100]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
export KUBEBUILDER_ASSETS
cargo build --release -p homeostat-replicaset -p homeostat-benches --bin homeostat-replicaset --bin controller_peers
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
exec target/release/controller_peers replicaset --ours target/release/homeostat-replicaset \
    --theirs "$KUBEBUILDER_ASSETS/kube-controller-manager" "$@"
