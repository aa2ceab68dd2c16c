#!/usr/bin/env bash
# 1,000 replicas up and down again, by kube-controller-manager and by homeostat-replicaset, in turn,
# beside a fresh etcd and kube-apiserver each time. Prints wall time, CPU time, memory and requests.
#
#   benches/peers/replicaset.sh [--rounds 3] [--replicas 1000]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
export KUBEBUILDER_ASSETS
cargo build --release -p homeostat-replicaset -p homeostat-benches
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
exec target/release/replicaset_peers --homeostat target/release/homeostat-replicaset \
    --controller-manager "$KUBEBUILDER_ASSETS/kube-controller-manager" "$@"
