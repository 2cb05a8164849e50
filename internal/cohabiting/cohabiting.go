// Package cohabiting knows the resources that API servers serve under several groups at once: the objects are the same.
package cohabiting

import "slices"

// Groups lists the groups that have served the same objects under a resource's name, first the one to keep. It is nil for all
// other names. The groups are kube-apiserver's own pairs, past ones included.
func Groups(resource string) []string {
	switch resource {
	case "events":
		return []string{"", "events.k8s.io"}
	case "ingresses", "networkpolicies":
		return []string{"networking.k8s.io", "extensions"}
	case "deployments", "daemonsets", "replicasets":
		return []string{"apps", "extensions"}
	case "podsecuritypolicies":
		return []string{"policy", "extensions"}
	}
	return nil
}

// With lists the groups under which a resource may be found, its own first.
func With(group, resource string) []string {
	groups := Groups(resource)
	if !slices.Contains(groups, group) {
		return []string{group}
	}
	found := []string{group}
	for _, g := range groups {
		if g != group {
			found = append(found, g)
		}
	}
	return found
}
