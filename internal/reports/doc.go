// Package reports prints the results of the recorder's commands for people, as tables. Programs read the same results as JSON.
//
// Each function writes one result. It returns the error of a table that could not be written. It starts no goroutine, and has
// no knobs.
package reports
