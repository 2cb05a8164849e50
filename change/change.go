package change

import (
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A Class says what kind of change a delta is.
type Class string

// The classes. All but Shown can be folded into a count.
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

// A Delta is what Of looks at.
type Delta struct {
	Group, Resource string // "" and "pods"
	Type            delta.Type
	Source          delta.Source
	Patch           []byte    // from the version before; nil if there is none
	Before          patch.Doc // the version before; nil if it is not known
	Object          patch.Doc // the version after; of a deletion, the last one; nil if it is not known
}

// A Change says what a delta changed.
type Change struct {
	Class Class
	// Node is the one that a Binding bound the Pod to.
	Node string
	// DeleteRequested says that the version has a deletionTimestamp that the version before did not have. The object lives on until its
	// grace period ends and its finalizers are gone.
	DeleteRequested bool
	// Evicted says that the API server noted an eviction in this version of a Pod. It does so in the status, just before it deletes the Pod.
	Evicted bool
	// Waiting are the reasons for which containers of a Pod began to wait, such as ImagePullBackOff. No container waited in the
	// version before. That a container is being made is no such reason.
	Waiting []string
}

// Of says what a delta changed. Without Patch it compares Before with Object.
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

// steps are the operations that are not bookkeeping.
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

// bookkeeping reports whether the server writes a path by itself.
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
	case c.Evicted, len(c.Waiting) > 0: // They change only the status, and people look for them.
	case len(steps) == 0:
		c.Class = ManagedFields
	case all(steps, func(op patch.Operation) bool { return len(op.Path) > 0 && op.Path[0] == "status" }):
		c.Class = Status
	case all(steps, leaderElection):
		c.Class = LeaderElection
	}
	return c
}

// evicted reports whether the version says of a Pod that it is evicted, and the version before did not.
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

// leader is the annotation in which controllers of old kept the lock of their leader election.
const leader = "control-plane.alpha.kubernetes.io/leader"

func leaderElection(op patch.Operation) bool {
	if is(op.Path, "metadata", "annotations", leader) {
		return true
	}
	if !is(op.Path, "metadata", "annotations") {
		return false
	}
	// The annotation came with the map that holds it, or went with it.
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

// bound gives the node that a Pod was bound to. The subresource binding sets spec.nodeName and the condition PodScheduled, and clears the
// nominated node. Servers from 1.35 on also copy the zone and the region of the node.
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

// scheduled reports whether a step is about the condition PodScheduled and nothing else.
func scheduled(op patch.Operation) bool {
	if len(op.Path) < 2 || op.Path[0] != "status" || op.Path[1] != "conditions" {
		return false
	}
	switch {
	case len(op.Path) > 3:
		return true // within a condition: a Pod that waits for its binding has no other
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

// folded is the class of objects whose every delta is folded, or "".
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

// text gives the string at a pointer, or "".
func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}
