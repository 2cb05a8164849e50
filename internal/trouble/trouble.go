// Package trouble reads from the status of an object why it makes no progress. It does no I/O and does not use the record.
//
// A Pod is in trouble if it cannot be scheduled, or if a container waits for another reason than its creation. A Deployment is in trouble if
// its conditions say that it makes no progress, or that it cannot make Pods.
package trouble

import (
	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/patch"
)

// Trouble is a reason why an object makes no progress.
type Trouble struct{ Reason, Message string }

// Deployment returns the troubles in the conditions of a Deployment.
func Deployment(doc patch.Doc) (all []Trouble) {
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		switch text(c, "/type") + "=" + text(c, "/status") {
		case "Progressing=False", "ReplicaFailure=True":
			all = append(all, Trouble{text(c, "/reason"), text(c, "/message")})
		}
	}
	return all
}

// Pod returns the reasons why the containers of a Pod do not run.
func Pod(doc patch.Doc) (all []Trouble) {
	for _, list := range []string{"/status/initContainerStatuses", "/status/containerStatuses"} {
		statuses, _ := patch.Get(doc, list)
		for _, s := range patch.Members(statuses) {
			if reason := text(s, "/state/waiting/reason"); change.Waits(reason) {
				all = append(all, Trouble{reason, text(s, "/state/waiting/message")})
			}
		}
	}
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		if text(c, "/type") == "PodScheduled" && text(c, "/status") == "False" && text(c, "/reason") == "Unschedulable" {
			all = append(all, Trouble{"Unschedulable", text(c, "/message")})
		}
	}
	return all
}

// text returns the string at a pointer, or "".
func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}
