// Package election decides which of several recorders of one cluster records, and which stand by.
//
// It provides liveness only. The compare-and-swap in sink/postgres (I1) prevents two recorders from both writing, whatever this package
// decides and whatever the clocks show.
//
// # What it guarantees
//
//   - Of the recorders of a cluster that reach its database, one leads.
//   - If the leader ends cleanly, another leads within about a second.
//   - If the leader is killed, stopped or cut off, another leads two looks after the term.
//   - A leader that works keeps the leadership, even if a supervisor starts other recorders again and again.
//   - A leader that loses the database or the API server goes on, because it holds the deltas that wait for the database. When the
//     database is back, standbys wait for a term before they try.
//   - Only a login with the role kuberewind_writer can take, hold or lock the leadership. An auditor cannot.
//   - Between two looks there is no transaction, no lock and no state of a session. So a pooler may run each look on another session, and
//     the election never delays VACUUM.
//
// # How
//
// The leadership of a cluster is a row of kuberewind.leaders. It holds the name of the leader, the leader's token, the time of the last
// renewal and the leader's term. All times come from the database's clock.
//
// Each process looks once a second, or five times in a term if that is more often. One look is one message with all statements of one transaction: it takes, renews or releases the row,
// and reads it. So no transaction stays open if a process is stopped in the middle of a look.
//
//	         the row is released, or two looks found it expired
//	┌─────────┐ ───────────────────────────────────────────────▶ ┌───────┐ ─┐ renew the row
//	│ standby │                                                  │ leads │  │ at each look;
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
// A standby takes an expired row at the second look. If the leader and the database were delayed together, the leader renews the row
// before that.
//
// The row of a killed recorder stays, so the next recorder waits for the term. A recorder that is restarted on the same data directory
// does not wait. Its token is in a file there, and the lock of the file proves that the former process has ended.
// The token is valid only on the machine and in the place where the file was written. A copy of the directory gets a new token.
//
// If a Lease is given, only the process that holds the Lease takes the row. client-go's election decides who holds the Lease. A leader
// that could not renew the Lease for a term releases the row, so that another process can take both. The leader goes on while no other
// process has the Lease.
//
// Standbys write their names to kuberewind.standbys once in a term, for "recorder status".
//
// # What it rejects
//
//   - A term of less than three seconds: a Lease counts in whole seconds.
//   - A database without the two tables. The first recorder makes them before it joins. Later versions of the schema keep their columns,
//     because standbys of other versions read them.
//
// # Goroutines
//
// One goroutine looks at the row, and one renews the Lease. Close ends both and waits for them.
package election
