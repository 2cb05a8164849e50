// Package election decides which of several recorders of one cluster records, and which stand by.
//
// It is about liveness only. The compare-and-swap in sink/postgres (I1) keeps two recorders from both writing,
// whatever this package decides, by whichever clock.
//
// # What it guarantees
//
//   - One recorder leads among those of a cluster that reach its database.
//   - If the leader ends cleanly, another leads within about a second.
//   - If the leader is killed, stopped or cut off, another leads two looks after the term.
//   - A leader that works keeps the leadership, however often a supervisor starts other recorders.
//   - A leader that loses the database or the API server goes on. It has what waits for the database. When the database is back,
//     standbys wait for a term before they try.
//   - Only a login with the role kuberewind_writer can take, hold or lock the leadership. An auditor cannot.
//   - Between two looks there is no transaction, no lock and no state of a session. A pooler may run each look on another session, and
//     VACUUM waits for nothing.
//
// # How
//
// The leadership of a cluster is a row of kuberewind.leaders. It holds the name of the leader, the leader's token, the time of the last
// renewal and the leader's term. All times are those of the database's clock.
//
// Each process looks once a second. One look is one message with all statements of one transaction: it takes, renews or releases the row,
// and reads it. A process that is stopped in the middle of a look leaves no transaction open.
//
//	         the row is released, or two looks found it expired
//	┌─────────┐ ───────────────────────────────────────────────▶ ┌───────┐ ─┐ renew the row
//	│ standby │                                                  │ leads │  │ each second;
//	└─────────┘                                                  └───────┘ ◀┘ an error changes nothing
//	  │  ▲ wait for a term                             another has │   ▲ │
//	  └──┘ after an error                                  the row ▼   │ │ another has the Lease
//	                                                    ┌────────────┐ │ │
//	                                                    │ asks the   │ │ │
//	                                                    │ record: is │─┘ │
//	                                                    │ it still   │yes│
//	                                                    │ mine?      │   │
//	                                                    └────────────┘   │
//	                                                         no │        ▼
//	                                                            └────▶ ends
//
// An expired row is taken at the second look. A leader that was held up together with the database renews the row before that.
//
// The row survives a recorder that is killed, so the next recorder waits for the term. A recorder that is started again on the same data
// directory does not wait. Its token is in a file there, and the lock of the file proves that the former process has ended.
// The file holds on the machine and in the place where it was written: a copy of the directory is another claimant.
//
// If a Lease is given, only the process that holds the Lease takes the row. The Lease is decided by client-go's election. A leader that could
// not renew the Lease for a term releases the row, so that another can take both. It goes on as long as no other process has the Lease.
//
// Standbys note themselves in kuberewind.standbys once in a term, for "recorder status".
//
// # What it rejects
//
//   - A term of less than three seconds: a Lease counts in whole seconds.
//   - A database without the two tables. The first recorder makes them before it joins. A later version of the schema keeps their columns,
//     because a standby of another version reads them.
//
// # Goroutines
//
// One for the row, and one for the Lease. Close ends both and waits for them.
package election
