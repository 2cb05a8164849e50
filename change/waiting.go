package change

import (
	"slices"

	"github.com/kuberewind/kuberewind/patch"
)

// Waits reports whether a container that waits for a reason makes no progress. One that is being made is as it should be.
func Waits(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != "PodInitializing"
}

// waiting are the reasons for which containers of a Pod wait, if none waited in the version before. A kubelet that tries again changes the
// reason with each attempt.
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
