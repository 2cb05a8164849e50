// Package story is the command story. It prints what package story finds: an object and all that it owns, on one time line.
package story
