// Package timeshift finds the times in objects and moves them.
//
// # What it guarantees
//
//   - Only what is known to be a time is moved. In a Go type, these are all metav1.Time and metav1.MicroTime. In a custom
//     resource, these are all strings to which its definition gives the format date-time, and the metadata.
//   - A text that looks like a time stays as it is, for example the value of a ConfigMap or an annotation.
//   - A time keeps its zone. It keeps its number of digits, or gets more if the moved time needs them.
//
// It starts no goroutine and keeps nothing.
package timeshift
