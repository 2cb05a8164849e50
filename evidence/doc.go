// Package evidence finds the writer of a version of an object, from managedFields alone. It names a field manager only if the
// version proves it. It does no I/O and keeps no state.
//
// These rules apply in this order:
//
//	version                                          verdict
//	not from a watch, or in an open gap              none
//	Deleted, Sync                                    none
//	Added, no version before                         entry, if there is exactly one entry
//	another type, no version before                  none
//	no patch from the version before                 none
//	nothing but managedFields changed                none
//	managedFields changed, one candidate             entry
//	managedFields changed, several candidates        none
//	managedFields changed, no candidate              none, perhaps with a hint
//	managedFields unchanged, one owner               owner
//	everything else                                  none
//
// An entry is a candidate in these cases:
//
//   - It is new, and owns a path that the version added or replaced.
//   - Its time is later than before, and it owns such a path. An apply that only removes fields owns none: its time must be
//     within two seconds of the live observation.
//   - Its time is the same, and it owns such a path now that it did not own before.
//
// An entry is not a candidate in these cases:
//
//   - Its time is before that of an entry of the previous version: a client applied a stale file.
//   - Its name is before-first-apply or ancient-changes. The server makes these.
//
// The server does not date a change of managedFields alone: an apply that comes to own an existing value has no time. If such a
// change has a date, a client wrote managedFields itself, perhaps from a stale file. So the verdict for such a version is none.
//
// The owner owns every path that the version added or replaced, and is the only entry that does. The version removed no path. The
// owner's time is the newest in the object, and within two seconds of the live observation. An element of a list is owned only by
// its own key. The condition DisruptionTarget proves no owner: the server writes it in an eviction without an entry.
//
// The hint is the single entry that vanished, if it owned every removed path. It names the former owner, perhaps not the remover.
package evidence
