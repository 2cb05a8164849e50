// Package when parses instants in the forms that users type.
//
// # What it guarantees
//
//   - One text has one meaning. The zone and the clock are arguments, not globals.
//   - If a change of clocks repeats or skips a wall time, that time is an error. The error names the possible times.
//   - A duration before now becomes a time with whole milliseconds, so that errors print it short.
//   - An error suggests the corrected form, if there is one.
//
// # What it reads
//
//	form                                   means
//	now, seq:N, rv:N, RFC 3339             as history.ParseInstant
//	1h, -10m, 2d12h, 10m ago, 2 hours ago  before now; a day has 24 hours
//	18:45, 18:45:07                        today
//	today, yesterday                       the beginning of the day
//	yesterday 14:05                        that wall time
//	2026-11-24, 2026-11-24 18:45           the beginning of the day; that wall time
//	1795587481, 1795587481.5               seconds since 1970
//
// # What it rejects, and why
//
// The package rejects a future wall time of today, because the user may mean yesterday. It rejects any other order than
// year, month, day, because countries differ. The libraries of the field guess in such cases, and ignore changes of clocks.
//
// # Goroutines
//
// None.
package when
