#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager and kubectl from the Go module proxy, once per
# version, and prints the directory that contains them (the value of KUBEBUILDER_ASSETS).
#
# The four binaries are installed together or not at all: they are built in a temporary directory,
# which is renamed at the end. Only the path of the directory goes to standard output.
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
    echo "build.sh: Go 1.26 or newer is required to build the control plane; install it, or set" \
        "KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl" >&2
    exit 1
fi

mkdir -p "$cache"
partial=$(mktemp -d "$assets.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
version="-X k8s.io/component-base/version.gitVersion=$kubernetes"
version+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

build() { # NAME PACKAGE LDFLAGS
    echo "build.sh: building $1 ($SECONDS s elapsed)" >&2
    (cd "$here" && CGO_ENABLED=0 GOFLAGS=-mod=readonly \
        go build -trimpath -buildvcs=false -ldflags "-s -w $3" -o "$partial/$1" "$2") >&2
}
build etcd go.etcd.io/etcd/server/v3 ""
for name in kube-apiserver kube-controller-manager kubectl; do
    build "$name" "k8s.io/kubernetes/cmd/$name" "$version"
done

chmod 755 "$partial"
# If another build has finished first, its directory is used.
mv -T "$partial" "$assets" 2>/dev/null || [[ -d $assets ]]
echo "build.sh: done in $SECONDS s" >&2
echo "$assets"
