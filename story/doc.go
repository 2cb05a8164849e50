// Package story shows what happened to an object and to all objects that it owns, on one time line. It prints nothing.
//
// Find finds the object in all its lives. Search finds the objects that it owns, those that they own, and the Events about any of
// them. Entries then yields their deltas in the order of the record, each with what it changed (package change). Rollouts sums up
// the entries of each rollout of a Deployment.
//
// # What it guarantees
//
//   - A UID identifies an owner, not a name. An object that was created again under its name is another object.
//   - An Event belongs to the object whose UID it names. The package skips an Event that client-go named after another object.
//   - An object that was adopted later belongs to its owner with its whole life. So does an object that was orphaned since.
//   - It reads the lives of one namespace, with their owners, by an index. Another index holds the few later versions of the whole
//     record that brought other owners. If a life began before the first remaining day, the package reads its first version.
//   - In addition, it reads the versions of the found objects, and the first versions of Events that may be about them, again by an
//     index. The size of the record outside the namespace hardly matters.
//   - Memory holds the last version of each object, compressed. Entries are not kept.
//
// # What it rejects, and why
//
//   - A cluster-scoped object may own objects in any namespace. For such an object, the package reads the lives of all namespaces.
//
// # Rollouts
//
// A rollout starts with a new spec.template. It is stuck in these cases:
//
//   - A container of a Pod of its ReplicaSet waits for another reason than being created.
//   - Such a Pod cannot be scheduled.
//   - The Deployment reports that it makes no progress, or that it cannot create Pods.
//
// It is done when the controller has observed the newest generation, and all replicas have the new template and are available. A
// newer template ends it earlier. If that template is the one that the rollout replaced, the rollout is undone. Otherwise it is
// replaced.
package story
