// Package entries converts deltas to the lines of a log: entries, and remarks about gaps and pauses between them. It prints
// nothing.
package entries
