#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager and kubectl from the Go module proxy, once per
# version, and prints the folder that holds them (the value of KUBEBUILDER_ASSETS).
#
# The four binaries appear together or not at all: they are built in a folder beside the final one,
# which is renamed when the last is done. Only the folder's path goes to standard output.
set -euo pipefail

kubernetes=v1.37.1
etcd=v3.7.0

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/homeostat/control-plane
assets=$cache/kubernetes-$kubernetes-etcd-$etcd

if [[ -d $assets ]]; then
    echo "$assets"
    exit 0
fi
if ! command -v go >/dev/null; then
    echo "build.sh: Go 1.26 or newer is needed to build the control plane; install it, or set" \
        "KUBEBUILDER_ASSETS to a folder that holds etcd, kube-apiserver and kubectl" >&2
    exit 1
fi

mkdir -p "$cache"
partial=$(mktemp -d "$assets.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
version="-X k8s.io/component-base/version.gitVersion=$kubernetes"
version+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

build() { # NAME PACKAGE LDFLAGS
    echo "build.sh: building $1 ($SECONDS s so far)" >&2
    (cd "$here" && CGO_ENABLED=0 GOFLAGS=-mod=readonly \
        go build -trimpath -buildvcs=false -ldflags "-s -w $3" -o "$partial/$1" "$2") >&2
}
build etcd go.etcd.io/etcd/server/v3 ""
for name in kube-apiserver kube-controller-manager kubectl; do
    build "$name" "k8s.io/kubernetes/cmd/$name" "$version"
done

chmod 755 "$partial"
# Another build may have finished first: its folder is as good as ours.
mv -T "$partial" "$assets" 2>/dev/null || [[ -d $assets ]]
echo "build.sh: done in $SECONDS s" >&2
echo "$assets"
