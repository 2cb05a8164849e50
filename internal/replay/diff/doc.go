// Package diff is the command diff. It shows what is different between two instants.
package diff
