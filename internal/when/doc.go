// Package when reads instants as people type them.
//
// # What it guarantees
//
//   - One text has one meaning. The zone and the clock are arguments, not globals.
//   - A wall time that a change of clocks makes twice, or never gets, is an error. The error names the moments that can be meant.
//   - An instant before now has whole milliseconds, so that errors print it short.
//   - An error offers the corrected form, if there is one.
//
// # What it reads
//
//	form                                   means
//	now, seq:N, rv:N, RFC 3339             as history.ParseInstant
//	1h, -10m, 2d12h, 10m ago, 2 hours ago  before now; a day has 24 hours
//	18:45, 18:45:07                        today
//	today, yesterday                       the begin of the day
//	yesterday 14:05                        that wall time
//	2026-11-24, 2026-11-24 18:45           the begin of the day; that wall time
//	1795587481, 1795587481.5               seconds since 1970
//
// # What it rejects, and why
//
// A wall time of today that is still to come: the text may mean yesterday. Day and month in another order than year, month, day:
// readers of two countries differ. The libraries of the field guess in such cases, and know nothing of changes of clocks.
//
// # Goroutines
//
// None.
package when
