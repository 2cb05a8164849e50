// Package entries makes of deltas what a log shows. There are entries, and remarks about gaps and pauses between them. It prints nothing.
package entries
