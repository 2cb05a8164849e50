// Package coverage is the command coverage. It shows which stretches of the record are complete, and why the others are
// not.
package coverage
