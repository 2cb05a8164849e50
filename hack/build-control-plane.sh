#!/bin/sh
# Downloads or builds the control plane that the tests and the demo run: etcd, kube-apiserver and kubectl; with the argument "full"
# it also builds kube-scheduler, kube-controller-manager and kwok. A second call finds them and ends at once. The last line that it prints
# is their folder. Progress goes to standard error. The folder is documented in internal/controlplane/binaries.
#
# Options: --index URL  use another index of setup-envtest for downloads
#          --index none build everything
set -eu
cd "$(dirname "$0")/.."

# The go command needs a build cache and a module cache that it can write. An account without a home, or with a
# read-only one, gets them in a folder of its own under TMPDIR.
usable() {
	case "$1" in /*) mkdir -p "$1" 2>/dev/null && [ -w "$1" ] ;; *) return 1 ;; esac
}
fallback="${TMPDIR:-/tmp}/kuberewind-$(id -u)"
own_fallback() {
	mkdir -p -m 700 "$fallback"
	if [ -h "$fallback" ] || [ ! -O "$fallback" ]; then
		echo "build-control-plane: $fallback belongs to another account; set TMPDIR to a folder of your own" >&2
		exit 1
	fi
}
if ! usable "$(go env GOCACHE)"; then
	own_fallback
	GOCACHE="$fallback/go-build"
	export GOCACHE
	echo "build-control-plane: no build cache that can be written; using $GOCACHE" >&2
fi
if ! usable "$(go env GOMODCACHE)"; then
	own_fallback
	GOMODCACHE="$fallback/go-mod"
	export GOMODCACHE
	echo "build-control-plane: no module cache that can be written; using $GOMODCACHE" >&2
fi
if [ -z "$(go env GOPATH)" ]; then
	own_fallback
	GOPATH="$fallback/go"
	export GOPATH
fi

# `go run` would compile without any output.
hack/watched.sh "building build-control-plane" go build -buildvcs=false -v -o bin/hack/ ./hack/build-control-plane
exec bin/hack/build-control-plane "$@"
