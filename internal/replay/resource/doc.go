// Package resource finds the resources that the record holds at an instant, by the server's names.
//
// A Catalog answers client-go's discovery. So a name has the same meaning in replay as in kubectl. The error for an unknown
// name suggests similar names.
package resource
