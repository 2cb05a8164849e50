// Package diff is the command diff. It shows the differences between two instants.
package diff
