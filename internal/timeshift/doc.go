// Package timeshift finds the times in objects and moves them.
//
// # What it guarantees
//
//   - It moves only values that are known to be times. In a Go type, these are all metav1.Time and metav1.MicroTime. In a custom
//     resource, these are the metadata's times and all strings to which the definition gives the format date-time.
//   - It does not move a text that only looks like a time, for example in a value of a ConfigMap or in an annotation.
//   - A moved time keeps its zone. It keeps its number of digits, or gets more if the new time needs them.
//
// The package starts no goroutine and keeps nothing.
package timeshift
