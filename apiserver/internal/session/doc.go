// Package session keeps the sessions of a server: clocks of the past, and API roots that follow them.
//
// # What it guarantees
//
//   - While a clock plays, its root advances about each 100 ms, over the deltas whose time has come. It goes on at the end of the record.
//   - Jump and Advance of a root come one after the other. No tick undoes a seek.
//   - If the record cannot be read, the clock stands still and the state says why. It goes on when the record is back.
//   - A session ends 30 minutes after its last request. While a request is open, it does not end.
//
// # What it rejects, and why
//
//	a name that is no DNS label, live, unknown fields   400: the answer says what to write
//	moving or ending a session of another user          403: its creator owns it
//	more than 32 sessions, or more than 8 of a user     429
//	a session that is not there                         404 of the JSON API, 410 of a root: clients take a 404 there for an old API server
//
// # Goroutines
//
// Each session has one, which moves its root and ends it. Close ends and awaits them all.
//
//	set (PUT) ──▶ standing ◀──pause/play──▶ playing ──▶ playing at the end of the record
//	                 │                         │
//	                 └── 30 minutes without a request, DELETE, Close ──▶ ended
package session
