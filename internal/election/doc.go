// Package election decides which of several recorders of one cluster records, and which stand by.
//
// It is about liveness only. That two recorders never both write is the work of the compare-and-swap in sink/postgres (I1),
// whatever is decided here, by whichever clock.
//
// # What it guarantees
//
//   - Of the recorders of a cluster that reach its database, one is elected. When it ends, however it ends, another is: at once
//     where its connection is closed, which the kernel does for a process that was killed, and after the term where it was
//     stopped or cut off.
//   - It is not elected twice while another that was elected still holds its seat: recorders that a supervisor starts again
//     and again do not take the cluster from each other.
//   - A leader that loses the database, or the API server, goes on: it is away for the others as well, and the leader has what waits for
//     it. When the database is back, standbys wait for a term before they try.
//
// # How
//
// The seat is an advisory lock of PostgreSQL, held by a transaction that does nothing else: it has neither a snapshot nor a
// transaction number between its statements, so that it keeps VACUUM from nothing, and unlike a lock of the session it means the same
// through a pooler. Its holder says something each second, and the server ends a session that has said nothing for a
// term (idle_in_transaction_session_timeout): no clock is compared with another. Standbys ask each second; to wait for the lock would be a
// statement of hours, whose snapshot VACUUM would have to heed.
//
// Where a Lease is given, the seat is only for who holds the Lease, by client-go's own election. A leader that could not
// renew the Lease for a term gives up the seat, so that another can take both, and goes on as long as nobody has.
//
// # What it rejects
//
// A term of less than three seconds: a Lease counts in whole seconds.
//
// # Goroutines
//
// One for the seat, and one for the Lease. Close ends both and waits for them.
package election
