// Package controlplane runs a real Kubernetes control plane on this machine, for tests and for the demo. It runs one etcd, and
// one or more kube-apiservers on it. If wanted it adds the scheduler, the controller manager and kwok, which turn Deployments
// into running Pods. It needs no container engine and no cluster. Product code does not import it.
//
// # What it guarantees
//
// Everything listens on the loopback interface only, on ports below those that systems use for outgoing connections. If another
// process takes a port between its choice and its use, the component is started again on another one.
//
// The address of an API server, and so a kubeconfig, stays valid over its restarts. Clients reach it through a proxy in this
// process, which is open exactly while the server listens. TLS goes through it untouched. etcd keeps its ports.
//
// [ControlPlane.Stop] ends clients of a component before the component, and returns when no process is left. If this process is
// killed before that, even with signal 9, the kernel kills the children (on Linux; elsewhere they stay). The next process that
// makes a temporary folder removes the files of a killed one. A lock on a file in the folder shows whether its owner lives.
//
// A failed start says why, with the end of the component's log.
//
// # What it rejects
//
// Programs that have not been built: [Start] and [ForTest] fail and name the make target, and tests are not skipped. A second
// control plane in the same folder. User names, groups and tokens that would break the lines of a token file.
//
// # Faults
//
// Each [Component] can be killed, stopped, started again, paused and continued. [APIServer.CutConnections] breaks every
// client's connection. [Etcd.Compact] makes old revisions unreadable; [Etcd.SaveData] and [Etcd.RestoreData] make
// history go backwards.
//
// # Oracles
//
// [Etcd.History] gives every write there was; a recorder must have each exactly once. [APIServer.Requests] gives every request
// that the API server received. A second API server started with --watch-cache=false answers from etcd alone.
//
// # Knobs and their defaults
//
// The knobs are [Options], [APIServerOptions] and [WorkloadOptions]; the first two take flags of the programs. Some defaults
// differ from the programs' own: no compaction, no fsync, etcd's quota 8 GiB, no ServiceAccount admission. The kubernetes
// Service has no endpoints, and watches end half a second after a server is asked to stop. Without the controller manager, the
// cluster roles that Kubernetes aggregates (view, edit, admin) stay empty.
//
// # Goroutines
//
// Each child process has one goroutine, which starts it, keeps its parent thread alive and reaps it. Each listening proxy has
// one, and each client connection three. All have ended when Stop returns.
package controlplane
