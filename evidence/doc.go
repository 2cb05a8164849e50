// Package evidence judges who wrote a version of an object, from managedFields alone. It names a field manager only if the version
// proves it. It does no I/O and keeps no state.
//
// The rules, in their order:
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
//   - Its time is later than before, and it owns such a path. An apply that only removes owns none: its time must be within two seconds of
//     the live observation.
//   - Its time is the same, and it owns such a path now that it did not own before.
//
// An entry is no candidate in these cases:
//
//   - It is earlier than an entry of the version before: a stale file was applied.
//   - Its name is before-first-apply or ancient-changes. The server makes these.
//
// The server does not date a change of managedFields alone: an apply that comes to own an existing value has no time. If
// something is dated, a client wrote it into managedFields itself, perhaps out of a stale file. So such a version names nobody.
//
// The owner owns every path that the version added or replaced, and is the only entry that does. No path was removed. It has the
// object's newest time, which is within two seconds of the live observation. An element of a list is owned only by its own key. Nobody
// proves to have written the condition DisruptionTarget so: the server writes it in an eviction, and leaves no trace.
//
// The hint is the one entry that vanished, if it owned every path that was removed. It is the former owner, perhaps not the remover.
package evidence
