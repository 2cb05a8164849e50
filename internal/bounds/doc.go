// Package bounds says between which times the deltas of a pause happened.
//
// No recorder watched in a pause, so the record only estimates when something happened in it. But one etcd numbers all that it keeps, and
// resource versions are that order. A delta therefore lies between the proved times of its neighbours.
//
// Proved times have whole seconds, and count for their whole second:
//
//	delta                          proved time
//	Added                          creationTimestamp
//	Updated, Deleted               the newest entry of managedFields, if this version made it newer than all others
//	sets deletionTimestamp         deletionTimestamp less the grace period
//
// Two more facts bound a delta. It happened after the pause began, and before it, or any later one, was observed. A delta that seems to be
// live bounds nothing from below: a recorder that starts slowly may see it long after it happened. An estimate never bounds another.
//
// Bounds may contradict each other, if clocks of servers disagree. The estimate then stays as it was, and the Span says so.
//
// The package does no I/O. The caller gives it deltas that one etcd numbered (I4).
package bounds
