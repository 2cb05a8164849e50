// Package binaries finds, downloads and builds the programs of the control plane for tests and demo: kube-apiserver, etcd and
// kubectl. For a cluster with running workloads it adds kube-scheduler, kube-controller-manager and kwok.
//
// [Find] never downloads and never builds. A test that lacks the programs fails and names the make target.
//
// [Build] downloads kube-apiserver, etcd and kubectl by setup-envtest, and builds the others. If the download fails, if no data
// come for 20 seconds, or if it takes longer than 3 minutes, it builds all programs. It builds with the go command, from Go
// modules.
//
// The folder that they return holds:
//
//   - every program that was asked for, whole;
//   - downloaded programs, from an archive with the SHA-512 of test/envtest/releases.yaml or of the index that the caller
//     named;
//   - built programs, from the sources that go.mod and go.sum of the nested modules test/controlplane and test/kwok name now.
//
// The folder's name is a hash of these five files. A program enters the folder by a rename, so an interrupted build adds
// nothing half-written. Two builders at once wait for each other on a file lock, which the kernel drops when its holder dies.
// The downloaded and the built programs have the same minor version of Kubernetes; the patch version may differ.
//
// The cache is the first of these that is set, and lies outside git:
//
//	KUBEREWIND_CONTROL_PLANE  a folder that holds the programs; used as it is, never built into
//	KUBEREWIND_CACHE          the cache; an error if it cannot be written
//	XDG_CACHE_HOME/kuberewind, HOME/.cache/kuberewind   passed over if they cannot be written
//	TMPDIR/kuberewind-UID     the last resort; refused if it belongs to somebody else
//
// Build owns three goroutines and waits for them: one repeats the step that is under way, one serves the index, one watches the
// download.
package binaries
