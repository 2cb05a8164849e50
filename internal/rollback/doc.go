// Package rollback finds out that an etcd was put back to an older state, and what its streams have missed by that.
//
// A Streams has all streams of a recorder, and a Stream what was served of one. Streams of one etcd are tied together, because
// their resource versions may be compared (I4). One thing is known of each revision: of which stream it is. Two things follow.
//
//   - Recovery. What others have is not asked for when history is recovered (Unaccounted, in stretch.go).
//   - Rollback. What was served and is something else in etcd now proves that etcd was put back.
//
// # The parts
//
//   - Streams: all of them. They probe (probe.go, lookback.go) and measure (depth.go).
//   - Stream: one resource. It is told what was served (revisions.go, lists.go) and what is on record (recall.go).
//   - claims, place, following, listing, history, living, sampled, trust: what a Stream knows, each with its own rules.
//   - etcd: what is known of one etcd. Streams that are known to be in it share it (etcd.go, together.go, ties.go).
//   - asker: the questions to etcd, through the API server (ask.go, compare.go).
//   - stretch: the revisions for which a recovery asks whose they are (stretch.go).
//   - comparison and event: what proves a rollback, and what follows from that (comparison.go, rollback.go).
//   - trail and fork: where the old history and the new one have parted (trust.go). A doubt asks for that (renewal.go).
//
// # The lock
//
// One mutex protects what all of them know: Streams.mu. A function that is called with it held has a name that ends in Locked. So
// are the methods of plain data called: claims, place, following, history, living, samples, window, trail. An asker needs no
// lock. Nothing is asked while the mutex is held.
//
// # How a rollback is found
//
//	served ──sample──▶ kept until the next probe ──look──▶ same: etcd held it (settled)
//	                            ▲                     ├──▶ unknown: etcd has forgotten
//	                            │ no answer           └──▶ other, or ahead: proof
//	                            └────────────────────────┘
//
// The newest version of each etcd is looked at each second. Each etcd is probed every ten seconds, and each stream is compared
// before each list and watch. The samples are the newest version of an etcd, the newest before each silence, some dozen since the
// last probe, and the newest of each list. Up to when all had an answer goes on record (Verified). A successor looks at what was
// recorded since.
//
// # What a proof does
//
//	follows ──proof──▶ has left ──list, trusted──▶ follows
//
// All streams leave their history that are not proved to be in another etcd. One entry of the queue opens their gaps, in one
// transaction (rollback.go). Each gap begins where etcd was last seen to hold what was served, or earlier. A stream that is
// opened later asks whether it was in that etcd (earlier.go).
//
// A list is trusted when the cache of the API server is shown to be of the new history (truthful.go, trust.go, renewal.go).
// "Restart kube-apiserver" is what helps if that takes long.
package rollback
