#!/usr/bin/env bash
# 5,000 pods in 100 namespaces, 1,000 quotas over them, deletions and an idle minute, by kube-controller-manager with
# its ResourceQuota controller alone and by homeostat-resourcequota, in turn, beside a fresh etcd and kube-apiserver
# each time. Prints CPU time, memory, requests, wall time and latencies.
#
#   benches/peers/resourcequota.sh [--rounds 3] [--percent 100]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
export KUBEBUILDER_ASSETS
cargo build --release -p homeostat-resourcequota -p homeostat-benches --bin homeostat-resourcequota --bin controller_peers
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
exec target/release/controller_peers resourcequota --ours target/release/homeostat-resourcequota \
    --theirs "$KUBEBUILDER_ASSETS/kube-controller-manager" "$@"
