// Package field compares two versions of an object. It returns the changed fields, with old and new values.
//
// It prints nothing, and does not know the record. It matches elements of a list by their names, not by their places.
package field
