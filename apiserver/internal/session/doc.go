// Package session keeps the sessions of a server: clocks of the past, and API roots that follow them.
//
// # What it guarantees
//
//   - While a clock plays, its root advances about every 100 ms, over the deltas whose time has come. At the end of the record, it waits
//     for new deltas.
//   - Calls of Jump and Advance of a root never overlap. No tick undoes a seek.
//   - If the record cannot be read, the clock stops and the state has the reason. When the record is readable again, the clock continues.
//   - A session ends 30 minutes after its last request. While a request is open, it does not end.
//
// # What it rejects, and why
//
//	a name that is no DNS label, live, unknown fields   400: the answer says what to write
//	moving or ending a session of another user          403: its creator owns it
//	more than 32 sessions, or more than 8 of a user     429
//	an unknown session                                  404 from the JSON API, 410 from a root: a 404 there would look like an old API server
//
// # Goroutines
//
// Each session has one goroutine, which moves its root and closes it at the end. Close ends all sessions and waits for them.
//
//	set (PUT) ──▶ standing ◀──pause/play──▶ playing ──▶ playing at the end of the record
//	                 │                         │
//	                 └── 30 minutes without a request, DELETE, Close ──▶ ended
package session
