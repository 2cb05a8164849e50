package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/kube"
)

// checkConcurrency bounds the access reviews in flight.
const checkConcurrency = 8

// checkAccess checks the rights to list and watch every resource that the recorder would record.
func (c *checker) checkAccess(ctx context.Context, discovery *kube.Discovery) {
	all := make([]Access, len(discovery.Resources))
	var g errgroup.Group
	g.SetLimit(checkConcurrency)
	excluded := 0
	for i, resource := range discovery.Resources {
		if !c.filter.Resource(resource.GroupResource()) {
			excluded++
			all[i] = Access{Resource: resource.GroupResource().String(), OK: true, Detail: "left out by the filter"}
			continue
		}
		g.Go(func() error {
			all[i] = c.tryResource(ctx, resource)
			return nil
		})
	}
	_ = g.Wait()
	for _, u := range discovery.Unwatchable {
		all = append(all, Access{Resource: u.Resource.GroupResource().String(), OK: true, Detail: "not recorded: " + u.Reason})
	}
	for _, name := range discovery.Misnamed {
		all = append(all, Access{Resource: name, OK: true, Detail: "not recorded: no Kubernetes API can have this name"})
	}
	slices.SortFunc(all, func(a, b Access) int { return strings.Compare(a.Resource, b.Resource) })
	c.report.Resources = all
	c.add(permissions(all, len(discovery.Resources)-excluded, excluded, len(discovery.Unwatchable)))
}

func (c *checker) tryResource(ctx context.Context, resource kube.Resource) Access {
	access := Access{Resource: resource.GroupResource().String(), group: resource.Group, name: resource.Name}
	var refused []string
	for _, verb := range []string{"list", "watch"} {
		allowed, reason, err := c.cluster.Client.Allowed(ctx, verb, resource)
		if err != nil {
			access.Detail = err.Error()
			return access
		}
		if !allowed && reason != "" {
			verb += " (" + reason + ")"
		}
		if !allowed {
			refused = append(refused, verb)
		}
	}
	if len(refused) > 0 {
		access.denied, access.Detail = true, "may not "+strings.Join(refused, ", ")
		return access
	}
	access.OK, access.Detail = true, "list, watch"
	return access
}

// permissions summarizes the access to all resources.
func permissions(all []Access, wanted, excluded, unwatchable int) Finding {
	const what = "permissions"
	var bad []Access
	for _, a := range all {
		if !a.OK {
			bad = append(bad, a)
		}
	}
	detail := fmt.Sprintf("may list and watch %d of %d resources", wanted-len(bad), wanted)
	if excluded > 0 {
		detail += fmt.Sprintf("; %d left out by the filter", excluded)
	}
	if unwatchable > 0 {
		detail += fmt.Sprintf("; %d cannot be watched at all", unwatchable)
	}
	return Finding{What: what, OK: len(bad) == 0, Detail: detail, Advice: advice(bad)}
}

// advice returns the rules to grant, and the flags that exclude the resources instead. It is text that can be pasted.
func advice(bad []Access) string {
	groups := map[string][]string{}
	var order []string
	var exclude strings.Builder
	for _, a := range bad {
		if !a.denied {
			continue
		}
		if groups[a.group] == nil {
			order = append(order, a.group)
		}
		groups[a.group] = append(groups[a.group], a.name)
		fmt.Fprintf(&exclude, " --exclude %s.%s", a.name, a.group)
	}
	if len(order) == 0 {
		return ""
	}
	slices.Sort(order)
	var text strings.Builder
	text.WriteString("Grant in the ClusterRole of the recorder:\n\nrules:\n")
	for _, group := range order {
		fmt.Fprintf(&text, "- {apiGroups: [%q], resources: [%s], verbs: [list, watch]}\n", group, strings.Join(groups[group], ", "))
	}
	fmt.Fprintf(&text, "\nor do not record them:\n\n %s\n", exclude.String())
	return text.String()
}
