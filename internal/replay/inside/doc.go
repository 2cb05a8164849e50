// Package inside runs a program whose Kubernetes clients work on the cluster as it was.
//
// # What it guarantees
//
//   - KUBECONFIG and KUBECACHEDIR name a folder of the program's own. It is removed when the program has ended, however it ended.
//   - Exit code and signals are the program's. If a signal ended it, the exit code is 128 and its number, as in a shell.
//   - If no server of the record runs, one runs as long as the program.
//
// # What it rejects, and why
//
// A signal from the terminal is not passed on: the terminal has sent it to the program already.
//
// # Goroutines
//
// One that passes signals on. It is that of signals.End.
package inside
