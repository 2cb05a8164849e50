// Package inside runs a program whose Kubernetes clients use the cluster of the past.
//
// # What it guarantees
//
//   - KUBECONFIG and KUBECACHEDIR name a folder for this program. The package removes it when the program has ended, for any
//     reason.
//   - Exit code and signals are the program's. If a signal ended it, the exit code is 128 plus the signal's number, as in a
//     shell.
//   - If no server of the record runs, the package starts one, which runs as long as the program.
//
// # What it rejects, and why
//
// The package does not pass on signals from the terminal, because the terminal has already sent them to the program.
//
// # Goroutines
//
// The goroutine of signals.End passes signals on.
package inside
