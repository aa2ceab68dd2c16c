#!/usr/bin/env bash
# 1,000 Foos created and then scaled, by the sample-controller and by homeostat-sample, in turn, beside a fresh etcd
# and kube-apiserver each time. Prints CPU time, memory, requests and wall time.
#
# The sample-controller has no flag for its request rate: it is built from the module's source with one line more.
#
#   benches/peers/sample.sh [--rounds 3] [--percent 100]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

KUBEBUILDER_ASSETS=${KUBEBUILDER_ASSETS:-$(apiserver/control-plane/build.sh)}
export KUBEBUILDER_ASSETS
theirs=$PWD/target/peers/sample-controller
source=$theirs.source
mkdir -p target/peers
module=$(cd benches/peers && go mod download -json k8s.io/sample-controller@v0.37.1 | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
rm -rf "$source" && cp -r "$module" "$source" && chmod -R u+w "$source"
sed -i 's|^\tkubeClient, err := |\tcfg.QPS, cfg.Burst = 1000, 2000\n&|' "$source/main.go"
grep -q 'cfg.QPS, cfg.Burst = 1000, 2000' "$source/main.go"
(cd "$source" && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$theirs" .)
cargo build --release -p homeostat-sample -p homeostat-benches --bin homeostat-sample --bin controller_peers
echo "machine: $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-), $(uname -sr)"
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
exec target/release/controller_peers sample --ours target/release/homeostat-sample --theirs "$theirs" "$@"
