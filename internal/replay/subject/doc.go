// Package subject is the common part of commands about one object. It gives them one form, opens the record, and finds the
// object.
package subject
