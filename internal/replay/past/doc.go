// Package past connects Kubernetes clients to an instant: it resolves the instant in the record, finds or starts a server,
// and writes a kubeconfig.
//
// # What it guarantees
//
//   - A kubeconfig names one seq, which never changes. The package resolves a typed time or duration once, and puts the time
//     into the context's name.
//   - The package never merges a kubeconfig into another.
//
// # Goroutines
//
// Own starts a server in one goroutine. It runs until the caller calls the returned function.
package past
