#!/usr/bin/env bash
# The same requests over TCP to the embedded API server and to a real kube-apiserver with its etcd, in turn, by the same
# client. Prints rates, CPU time and ratios; then what the embedded one does in process, beside what is aimed at.
#
#   benches/peers/apiserver.sh [--rounds 3] [--requests 2000]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
export KUBEBUILDER_ASSETS
cargo build --release -p homeostat-apiserver --bin homeostat-apiserver
cargo build --release -p homeostat-benches --bin apiserver_peers
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
target/release/apiserver_peers compare --ours target/release/homeostat-apiserver "$@"
target/release/apiserver_peers alone
