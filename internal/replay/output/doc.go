// Package output is how commands print. It has text, wide and JSON, stamps of time, and progress.
package output
