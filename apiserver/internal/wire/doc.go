// Package wire writes answers in the forms that Kubernetes clients expect: JSON bodies, Status objects for errors, Warning headers.
//
// It starts no goroutine and keeps no state.
package wire
