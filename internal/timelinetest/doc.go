// Package timelinetest has what the tests of the timeline and of its page share.
//
//   - A Book writes a record with the real sink, as it is told: deltas, lists, gaps, pauses, steps of the clock.
//   - SQL holds the pieces of docs/timeline.md. A Choice is a random filter, as parameters of the timeline and as SQL.
package timelinetest
