// Package timeshift finds the times in objects and moves them.
//
// # What it guarantees
//
//   - Only what is known to be a time is moved. Of a Go type, that is each metav1.Time and metav1.MicroTime. Of a custom resource, it is each
//     string to which its definition gives the format date-time, and the metadata.
//   - A text that looks like a time stays as it is, for example the value of a ConfigMap or an annotation.
//   - A time keeps its zone. It keeps its number of digits, or gets more if the moved time needs them.
//
// It starts no goroutine and keeps nothing.
package timeshift
