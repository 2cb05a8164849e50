// Package change says what a delta changed, and never who changed it. It does no I/O and keeps no state.
//
// Of gives each delta one class. These are their rules, in their order:
//
//	class            delta
//	Event            every delta of Events
//	Lease            every delta of Leases
//	Endpoints        every delta of EndpointSlices and Endpoints that Kubernetes' own controllers manage, by their label
//	Shown            every other Added and Deleted, and the first version on record of every other object
//	Resync           a Sync that changed nothing
//	Binding          spec.nodeName of a Pod was set, with the condition PodScheduled: the scheduler bound it to a node
//	Shown            the API server noted the eviction of a Pod, which it does in the status
//	Shown            a container of a Pod began to wait, and not because it is being made
//	ManagedFields    nothing changed but bookkeeping
//	Status           nothing changed but bookkeeping and the status
//	LeaderElection   nothing changed but bookkeeping and the annotation of an old leader election
//	Shown            everything else
//
// Of gives no Termination. A log counts so the steps of a deletion that stand just before the Deleted itself.
//
// Bookkeeping is metadata.managedFields, metadata.resourceVersion and metadata.generation. A version that changes a status and
// a label does both: it is shown. Annotations, finalizers and owners are too.
//
// A log for people shows the class Shown and counts the others. Counts is for that.
package change
