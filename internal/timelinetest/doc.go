// Package timelinetest has what the tests of the timeline and of its page share: the pieces of docs/timeline.md, and random filters.
// A Choice is a filter as parameters of the timeline and as SQL.
package timelinetest
