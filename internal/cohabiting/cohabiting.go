// Package cohabiting lists the resources whose objects API servers serve under several groups at once.
package cohabiting

import "slices"

// Groups returns the groups that have served the same objects under a resource's name. The first is the group to keep. For all other names
// it returns nil. The groups are kube-apiserver's own pairs, including former ones.
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

// With returns the groups under which the objects of a resource may be served, its own group first.
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
