// Package reports prints the results of the recorder's commands for people, as tables. Programs read the same results as JSON.
//
// Each function writes one result, and returns the error if a table could not be written. The package starts no goroutine and has no
// knobs.
package reports
