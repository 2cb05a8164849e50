// Package field compares two versions of an object. It says which fields changed, with old and new values.
//
// It prints nothing, and knows nothing of the record. It follows the elements of a list by their names, not by their places.
package field
