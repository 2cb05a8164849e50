package change

import (
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A Class is a kind of change.
type Class string

// The classes. All except Shown can be folded into a count.
const (
	Shown          Class = "shown"
	Event          Class = "event"
	Lease          Class = "lease"
	Endpoints      Class = "endpoints"
	Binding        Class = "binding"
	Status         Class = "status"
	ManagedFields  Class = "managedFields"
	LeaderElection Class = "leaderElection"
	Resync         Class = "resync"
	Termination    Class = "termination"
)

// A Delta is the input of Of.
type Delta struct {
	Group, Resource string // "" and "pods"
	Type            delta.Type
	Source          delta.Source
	Patch           []byte    // from the previous version; nil if there is none
	Before          patch.Doc // the previous version; nil if unknown
	Object          patch.Doc // the version after the delta; for a deletion, the last one; nil if unknown
}

// A Change describes what a delta changed.
type Change struct {
	Class Class
	// Node is the Node to which a Binding bound the Pod.
	Node string
	// DeleteRequested is true if the version has a deletionTimestamp and the previous version had none. The object
	// lives until its grace period ends and its finalizers are gone.
	DeleteRequested bool
	// Evicted is true if the API server noted an eviction in this version of a Pod. It does so in the status, just
	// before it deletes the Pod.
	Evicted bool
	// Waiting holds the reasons for which containers of a Pod began to wait, such as ImagePullBackOff. In the previous
	// version no container waited. A container that is being created does not count.
	Waiting []string
}

// Of returns what a delta changed. Without Patch it compares Before with Object.
func Of(d Delta) Change {
	if class := d.folded(); class != "" {
		return Change{Class: class}
	}
	if d.Type == delta.Added || d.Type == delta.Deleted {
		return Change{Class: Shown}
	}
	steps, known := d.steps()
	switch {
	case !known && d.Source == delta.SourceResync:
		return Change{Class: Resync}
	case !known:
		return Change{Class: Shown}
	case d.Type == delta.Sync && len(steps) == 0:
		return Change{Class: Resync}
	}
	return d.changed(steps)
}

// steps returns the operations that are not bookkeeping.
func (d *Delta) steps() (steps []patch.Operation, known bool) {
	change := d.Patch
	if change == nil {
		if d.Before == nil || d.Object == nil {
			return nil, false
		}
		var err error
		if change, err = patch.Diff(d.Before, d.Object); err != nil {
			return nil, false
		}
	}
	for op := range patch.Operations(change) {
		if !bookkeeping(op.Path) {
			steps = append(steps, op)
		}
	}
	return steps, true
}

// bookkeeping reports whether the server maintains a path.
func bookkeeping(path []string) bool {
	return len(path) >= 2 && path[0] == "metadata" &&
		(path[1] == "managedFields" || path[1] == "resourceVersion" || path[1] == "generation")
}

func (d *Delta) changed(steps []patch.Operation) Change {
	if node, ok := d.bound(steps); ok {
		return Change{Class: Binding, Node: node}
	}
	c := Change{Class: Shown, DeleteRequested: slices.ContainsFunc(steps, func(op patch.Operation) bool {
		return op.Op == "add" && is(op.Path, "metadata", "deletionTimestamp")
	}), Evicted: d.evicted(), Waiting: d.waiting()}
	switch {
	case c.Evicted, len(c.Waiting) > 0: // They change only the status, but operators look for them.
	case len(steps) == 0:
		c.Class = ManagedFields
	case all(steps, func(op patch.Operation) bool { return len(op.Path) > 0 && op.Path[0] == "status" }):
		c.Class = Status
	case all(steps, leaderElection):
		c.Class = LeaderElection
	}
	return c
}

// evicted reports whether the version marks a Pod as evicted, and the previous version did not.
func (d *Delta) evicted() bool {
	return d.Group == "" && d.Resource == "pods" && evictionIn(d.Object) && !evictionIn(d.Before)
}

func evictionIn(doc patch.Doc) bool {
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		if text(c, "/type") == "DisruptionTarget" && text(c, "/status") == "True" && text(c, "/reason") == "EvictionByEvictionAPI" {
			return true
		}
	}
	return false
}

func all(steps []patch.Operation, f func(patch.Operation) bool) bool {
	return !slices.ContainsFunc(steps, func(op patch.Operation) bool { return !f(op) })
}

func is(path []string, tokens ...string) bool { return slices.Equal(path, tokens) }

// leader is the annotation in which older controllers kept the lock of their leader election.
const leader = "control-plane.alpha.kubernetes.io/leader"

func leaderElection(op patch.Operation) bool {
	if is(op.Path, "metadata", "annotations", leader) {
		return true
	}
	if !is(op.Path, "metadata", "annotations") {
		return false
	}
	// The map of annotations was added or removed together with its only annotation.
	return only(op.Value, leader) && only(op.Old, leader)
}

// only reports whether an object has no other member.
func only(object patch.Doc, key string) bool {
	for name := range patch.Members(object) {
		if string(name) != key {
			return false
		}
	}
	return true
}

// bound returns the Node to which a Pod was bound. The subresource binding sets spec.nodeName and the condition
// PodScheduled, and clears the nominated Node. Servers from 1.35 on also copy the zone and the region of the Node.
func (d *Delta) bound(steps []patch.Operation) (node string, ok bool) {
	if d.Group != "" || d.Resource != "pods" {
		return "", false
	}
	for _, op := range steps {
		switch {
		case op.Op == "add" && is(op.Path, "spec", "nodeName"):
			node = text(op.Value, "")
		case !scheduled(op) && !topology(op) && !is(op.Path, "status", "nominatedNodeName"):
			return "", false
		}
	}
	return node, node != ""
}

// scheduled reports whether a step changes only the condition PodScheduled.
func scheduled(op patch.Operation) bool {
	if len(op.Path) < 2 || op.Path[0] != "status" || op.Path[1] != "conditions" {
		return false
	}
	switch {
	case len(op.Path) > 3:
		return true // inside a condition: a Pod that waits for its binding has no other condition
	case len(op.Path) == 3:
		return op.Op != "add" || isScheduled(op.Value)
	}
	for _, condition := range patch.Members(op.Value) {
		if !isScheduled(condition) {
			return false
		}
	}
	return true
}

func isScheduled(condition patch.Doc) bool { return text(condition, "/type") == "PodScheduled" }

func topology(op patch.Operation) bool {
	if len(op.Path) < 2 || op.Path[0] != "metadata" || op.Path[1] != "labels" {
		return false
	}
	labels := []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}
	if len(op.Path) == 3 {
		return slices.Contains(labels, op.Path[2])
	}
	for name := range patch.Members(op.Value) {
		if !slices.Contains(labels, string(name)) {
			return false
		}
	}
	return op.Op == "add"
}

// folded returns the class of an object whose every delta is folded, or "".
func (d *Delta) folded() Class {
	switch d.Group + "/" + d.Resource {
	case "/events", "events.k8s.io/events":
		return Event
	case "coordination.k8s.io/leases":
		return Lease
	case "discovery.k8s.io/endpointslices":
		if label := d.metadata("labels", "endpointslice.kubernetes.io/managed-by"); sliceController(label) {
			return Endpoints
		}
	case "/endpoints":
		// Servers before 1.33 set no label. Their controller sets the annotation.
		if d.metadata("labels", "endpoints.kubernetes.io/managed-by") == "endpoint-controller" ||
			d.metadata("annotations", "endpoints.kubernetes.io/last-change-trigger-time") != "" {
			return Endpoints
		}
	}
	return ""
}

// sliceController reports whether a controller of Kubernetes manages EndpointSlices under that name.
func sliceController(name string) bool {
	return name == "endpointslice-controller.k8s.io" || name == "endpointslicemirroring-controller.k8s.io"
}

func (d *Delta) metadata(of, key string) string {
	return text(d.Object, "/metadata/"+of+"/"+strings.ReplaceAll(key, "/", "~1"))
}

// text returns the string at a pointer, or "".
func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}
