// Package binaries finds and builds the programs of the control plane that the tests and the demo run: kube-apiserver,
// etcd and kubectl, and for a cluster in which workloads come to life kube-scheduler, kube-controller-manager and kwok.
//
// It guarantees that a folder returned by [Find] or [Build] holds every program that was asked for, whole, built from the
// sources that the go.mod and go.sum of the nested modules test/controlplane and test/kwok name now: the folder's name is
// a hash of those four files. A program enters the folder by a rename, so an interrupted build leaves nothing half-written,
// and two builders at once wait for each other on a file lock, which the kernel drops when its holder dies.
//
// Nothing is downloaded but Go modules, by the go command. Find never builds: a test that needs the programs fails, and
// names the make target, rather than spending minutes unasked.
//
// The cache is the first of these that is set, and lies outside git:
//
//	KUBEREWIND_CONTROL_PLANE  a folder that holds the programs; used as it is, never built into
//	KUBEREWIND_CACHE          the cache; an error if it cannot be written
//	XDG_CACHE_HOME/kuberewind, HOME/.cache/kuberewind   passed over if they cannot be written
//	TMPDIR/kuberewind-UID     the last resort; refused if it belongs to somebody else
//
// The package starts no goroutines.
package binaries
