// Package bounds computes the time ranges in which the deltas of a pause happened.
//
// No recorder watches during a pause, so the record only estimates when its deltas happened. But one etcd numbers all its
// writes, and resource versions have that order. A delta therefore lies between the proved times of its neighbours.
//
// Proved times have whole seconds, so each stands for its whole second:
//
//	delta                          proved time
//	Added                          creationTimestamp
//	Updated, Deleted               the newest entry of managedFields, if this version made it newer than all others
//	sets deletionTimestamp         deletionTimestamp less the grace period
//
// Two more facts bound a delta. It happened after the pause began. It happened before the recorder observed it, or any later
// delta. A delta that looks live is no lower bound: a recorder that starts slowly may observe it long after it happened. An
// estimate never bounds another delta.
//
// If clocks of servers disagree, bounds may contradict each other. The estimate then stays unchanged, and the Span is
// Contradictory.
//
// The package does no I/O. The caller gives it deltas that one etcd numbered (I4).
package bounds
