// Package state returns the state of an object from the object itself: the colour of its lane, and a few words. It does no I/O.
//
// The reasons for which a Pod or a Deployment makes no progress come from internal/trouble, which package story uses, too.
package state

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/kuberewind/kuberewind/internal/trouble"
	"github.com/kuberewind/kuberewind/patch"
)

// A State is the state of an object.
type State string

// These are the states.
const (
	OK       State = "ok"
	Progress State = "progress" // not OK yet, but making progress
	Bad      State = "bad"
	Gone     State = "gone"
	Unknown  State = "unknown" // not on record, or the object reports it
)

// never lists resources of Kubernetes in which Of never finds a bad object. Most objects of a cluster are of one of these.
var never = []string{
	"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "services",
	"configmaps", "secrets", "serviceaccounts", "namespaces", "replicationcontrollers", "replicasets.apps", "statefulsets.apps", "daemonsets.apps",
	"controllerrevisions.apps", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
	"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
}

// CanBeBad reports whether objects of a resource can be bad: by a rule for the resource, or by a condition.
func CanBeBad(resource string) bool { return !slices.Contains(never, resource) }

// Of returns the state of an object of a resource, and a few words about it.
func Of(resource string, doc patch.Doc) (s State, words string) {
	switch resource {
	case "pods":
		s, words = pod(doc)
	case "deployments.apps":
		if why := trouble.Deployment(doc); len(why) > 0 {
			_, words = replicas(doc, "/spec/replicas", "/status/availableReplicas")
			return Bad, words + ", " + why[0].Reason
		}
		s, words = replicas(doc, "/spec/replicas", "/status/availableReplicas")
	case "replicasets.apps", "statefulsets.apps", "replicationcontrollers":
		s, words = replicas(doc, "/spec/replicas", "/status/availableReplicas")
	case "daemonsets.apps":
		s, words = replicas(doc, "/status/desiredNumberScheduled", "/status/numberAvailable")
	case "nodes":
		s, words = node(doc)
	case "jobs.batch":
		s, words = job(doc)
	case "persistentvolumeclaims", "persistentvolumes", "namespaces":
		s, words = phase(doc)
	default:
		s, words = conditions(doc)
	}
	if text(doc, "/metadata/deletionTimestamp") != "" && s != Bad {
		return Progress, "Terminating"
	}
	return s, words
}

func pod(doc patch.Doc) (State, string) {
	if why := trouble.Pod(doc); len(why) > 0 {
		return Bad, why[0].Reason
	}
	ready, all := 0, 0
	statuses, _ := patch.Get(doc, "/status/containerStatuses")
	for _, s := range patch.Members(statuses) {
		if all++; boolean(s, "/ready") {
			ready++
		}
	}
	switch at := text(doc, "/status/phase"); at {
	case "Failed":
		return Bad, cmp.Or(text(doc, "/status/reason"), exit(statuses), at)
	case "Succeeded":
		return OK, at
	case "Running":
		words := fmt.Sprintf("%d/%d ready", ready, all)
		if ready < all {
			return Progress, words
		}
		return OK, words
	case "", "Unknown":
		return Unknown, cmp.Or(at, "no phase")
	default:
		return Progress, at
	}
}

// exit returns why a container of a failed Pod ended.
func exit(statuses patch.Doc) string {
	for _, s := range patch.Members(statuses) {
		if reason := text(s, "/state/terminated/reason"); reason != "" && reason != "Completed" {
			return reason
		}
	}
	return ""
}

func replicas(doc patch.Doc, wanted, available string) (State, string) {
	want, have := number(doc, wanted, 1), number(doc, available, 0)
	words := fmt.Sprintf("%d/%d available", have, want)
	if have < want {
		return Progress, words
	}
	return OK, words
}

func node(doc patch.Doc) (State, string) {
	cordoned := ""
	if boolean(doc, "/spec/unschedulable") {
		cordoned = ", cordoned"
	}
	switch c := condition(doc, "Ready"); text(c, "/status") {
	case "True":
		return OK, "Ready" + cordoned
	case "False":
		return Bad, cmp.Or(text(c, "/reason"), "NotReady") + cordoned
	default:
		return Unknown, cmp.Or(text(c, "/reason"), "no Ready condition") + cordoned
	}
}

func job(doc patch.Doc) (State, string) {
	if c := condition(doc, "Failed"); text(c, "/status") == "True" {
		return Bad, cmp.Or(text(c, "/reason"), "Failed")
	}
	if text(condition(doc, "Complete"), "/status") == "True" {
		return OK, "Complete"
	}
	if text(condition(doc, "Suspended"), "/status") == "True" {
		return Progress, "Suspended"
	}
	return Progress, fmt.Sprintf("%d/%d complete", number(doc, "/status/succeeded", 0), number(doc, "/spec/completions", 1))
}

func phase(doc patch.Doc) (State, string) {
	switch at := text(doc, "/status/phase"); at {
	case "Bound", "Active", "Available":
		return OK, at
	case "Lost", "Failed":
		return Bad, at
	case "":
		return Unknown, "no phase"
	default:
		return Progress, at
	}
}

// conditions judges resources that have no rule, by the conditions that most controllers write.
func conditions(doc patch.Doc) (State, string) {
	for _, of := range []string{"Ready", "Available", "Established"} {
		switch c := condition(doc, of); text(c, "/status") {
		case "True":
			return OK, of
		case "False":
			return Bad, cmp.Or(text(c, "/reason"), "not "+of)
		case "Unknown":
			return Unknown, of + " unknown"
		}
	}
	return OK, ""
}

func condition(doc patch.Doc, of string) patch.Doc {
	all, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(all) {
		if text(c, "/type") == of {
			return c
		}
	}
	return nil
}

func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}

func boolean(doc patch.Doc, pointer string) bool {
	value, _ := patch.Get(doc, pointer)
	return string(value) == "true"
}

func number(doc patch.Doc, pointer string, without int64) int64 {
	value, _ := patch.Get(doc, pointer)
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return without
	}
	return n
}
