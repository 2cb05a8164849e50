// Package story is the command story. It prints the result of package story: an object and everything that it owns, on one
// time line.
package story
