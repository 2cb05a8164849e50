package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/kuberewind/kuberewind/kube"
)

// LeaseRight is the right that a recorder needs to be elected by a Lease.
var LeaseRight = Right{
	Resource: kube.Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease"},
	Verbs:    []string{"get", "create", "update"},
}

// EventRight is the right that a recorder needs to write Events about itself.
var EventRight = Right{Resource: kube.Resource{Version: "v1", Name: "events", Kind: "Event"}, Verbs: []string{"create", "patch"}}

// Right is the right to use verbs on a resource.
type Right struct {
	Resource kube.Resource
	Verbs    []string
}

// Missing returns the verbs of a right that are not granted in a namespace. It checks "create" without a name, because RBAC cannot grant
// that for one name.
func (c *Cluster) Missing(ctx context.Context, of Right, namespace, name string) (verbs []string, err error) {
	for _, verb := range of.Verbs {
		on := name
		if verb == "create" {
			on = ""
		}
		allowed, _, err := c.Client.AllowedOn(ctx, verb, of.Resource, namespace, on)
		if err != nil {
			return nil, err
		}
		if !allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

// Rule returns the rule to grant in a namespace, as text that can be pasted.
func (of Right) Rule(namespace string) string {
	return fmt.Sprintf("Grant in a Role of the recorder in namespace %s:\n\nrules:\n- {apiGroups: [%q], resources: [%s], verbs: [%s]}\n",
		namespace, of.Resource.Group, of.Resource.Name, strings.Join(of.Verbs, ", "))
}
