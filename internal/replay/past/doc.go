// Package past leads Kubernetes clients to an instant: it finds it in the record, finds or starts a server, and writes a kubeconfig.
//
// # What it guarantees
//
//   - A kubeconfig names one seq for good. A typed time or duration is resolved once and stands in the context's name.
//   - A kubeconfig stands alone. It is merged into no other.
//
// # Goroutines
//
// A server of its own runs in one until the function that comes with it is called.
package past
