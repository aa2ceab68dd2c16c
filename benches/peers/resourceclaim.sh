#!/usr/bin/env bash
# 1,000 pods with claims from a template, with 1 and with 3 entries; 1,000 pods that finish; 4 claims that 250 pods each
# share: by kube-controller-manager with its ResourceClaim controller alone and by homeostat-resourceclaim, in turn,
# beside a fresh etcd and kube-apiserver each time. Prints CPU time, memory, requests and wall time.
#
#   benches/peers/resourceclaim.sh [--rounds 3] [--percent 100]
#   benches/peers/resourceclaim.sh --at-rest    # memory beside 100,000 pods, of which 1 % have claims
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
export KUBEBUILDER_ASSETS
cargo build --release -p homeostat-resourceclaim -p homeostat-benches --bin homeostat-resourceclaim --bin controller_peers
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
exec target/release/controller_peers resourceclaim --ours target/release/homeostat-resourceclaim \
    --theirs "$KUBEBUILDER_ASSETS/kube-controller-manager" "$@"
