package change

import (
	"slices"

	"github.com/kuberewind/kuberewind/patch"
)

// Waits reports whether a container that waits for this reason makes no progress. A container that is being created
// makes progress.
func Waits(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != "PodInitializing"
}

// waiting returns the reasons for which containers of a Pod wait, if none waited in the previous version. A kubelet
// changes the reason with each retry.
func (d *Delta) waiting() []string {
	if d.Group != "" || d.Resource != "pods" || len(waitsIn(d.Before)) > 0 {
		return nil
	}
	return waitsIn(d.Object)
}

func waitsIn(pod patch.Doc) (reasons []string) {
	for _, list := range []string{"/status/initContainerStatuses", "/status/containerStatuses"} {
		statuses, _ := patch.Get(pod, list)
		for _, s := range patch.Members(statuses) {
			if reason := text(s, "/state/waiting/reason"); Waits(reason) && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	return reasons
}
