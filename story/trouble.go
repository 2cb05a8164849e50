package story

import (
	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/patch"
)

// A trouble is a reason for which an object makes no progress.
type trouble struct{ reason, message string }

// deploymentTroubles are what a Deployment says of itself.
func deploymentTroubles(doc patch.Doc) (all []trouble) {
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		switch text(c, "/type") + "=" + text(c, "/status") {
		case "Progressing=False", "ReplicaFailure=True":
			all = append(all, trouble{text(c, "/reason"), text(c, "/message")})
		}
	}
	return all
}

// podTroubles are why the containers of a Pod do not run.
func podTroubles(doc patch.Doc) (all []trouble) {
	for _, list := range []string{"/status/initContainerStatuses", "/status/containerStatuses"} {
		statuses, _ := patch.Get(doc, list)
		for _, s := range patch.Members(statuses) {
			if reason := text(s, "/state/waiting/reason"); change.Waits(reason) {
				all = append(all, trouble{reason, text(s, "/state/waiting/message")})
			}
		}
	}
	conditions, _ := patch.Get(doc, "/status/conditions")
	for _, c := range patch.Members(conditions) {
		if text(c, "/type") == "PodScheduled" && text(c, "/status") == "False" && text(c, "/reason") == "Unschedulable" {
			all = append(all, trouble{"Unschedulable", text(c, "/message")})
		}
	}
	return all
}
