// Package timelinetest holds the code that tests of the timeline and of its page share: the SQL of docs/timeline.md, and
// random filters. A Choice is a filter in two forms: as parameters of the timeline and as SQL.
package timelinetest
