// Package change finds what a delta changed, and never who changed it. It does no I/O and keeps no state.
//
// Of gives each delta one class, by the first of these rules that applies:
//
//	class            delta
//	Event            every delta of Events
//	Lease            every delta of Leases
//	Endpoints        every delta of EndpointSlices and Endpoints that Kubernetes' own controllers manage, by their label
//	Shown            every other Added and Deleted, and the first version on record of every other object
//	Resync           a Sync that changed nothing
//	Binding          spec.nodeName of a Pod was set, with the condition PodScheduled: the scheduler bound it to a node
//	Shown            the API server noted the eviction of a Pod, which it does in the status
//	Shown            a container of a Pod began to wait, and is not just being created
//	ManagedFields    only bookkeeping changed
//	Status           only bookkeeping and the status changed
//	LeaderElection   only bookkeeping and the annotation of an old leader election changed
//	Shown            everything else
//
// Of never returns Termination. A log uses it to count the steps of a deletion just before the Deleted itself.
//
// Bookkeeping is metadata.managedFields, metadata.resourceVersion and metadata.generation. A version that changes a
// status and a label is Shown. So are changes of annotations, finalizers and owners.
//
// A log for operators shows the class Shown and counts the others, with Counts.
package change
