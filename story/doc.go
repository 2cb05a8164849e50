// Package story tells what happened to an object and to all that it owns, on one time line. It prints nothing.
//
// Find finds the object, in all its lives. Search finds its owned objects, theirs, and the Events about any of them. Entries
// then gives their changes in the order of the record, each with what it changed (package change). Rollouts sums up what the
// entries showed of each rollout of a Deployment.
//
// # What it guarantees
//
//   - Owners are UIDs, not names. An object made again under its name is another one.
//   - Events belong by the UID of what they are about. One that client-go named after another object is not looked at.
//   - An object that was adopted later belongs to its owner, with its whole life. An object that was orphaned since does too.
//   - It reads the lives of one namespace by an index, with the owners that stand there. An index holds the few later versions that brought
//     other owners, of the whole record. It reads the first version of lives that began before what retention has left.
//   - Otherwise it reads the versions of the objects found, and the first versions of Events that may be about them, again by an index.
//     The size of the record outside of the namespace hardly matters.
//   - Objects come with their last version in memory, compressed. Entries are not kept.
//
// # What it rejects, and why
//
//   - The owned objects of a cluster-scoped object may be in any namespace. So the lives of all namespaces are read.
//
// # Rollouts
//
// A rollout starts with a new spec.template. It is stuck in these cases:
//
//   - A container of a Pod of its ReplicaSet waits, and not because it is being made.
//   - Such a Pod cannot be scheduled.
//   - The Deployment says that it makes no progress, or that it cannot make Pods.
//
// It is done when the controller has observed the newest generation, and all replicas are of the new template and available. A newer template
// ends it before that. The rollout is undone if that is the template from before it, else replaced.
package story
