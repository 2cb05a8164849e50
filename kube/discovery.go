package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kuberewind/kuberewind/internal/cohabiting"
)

// Discovery holds the API server's resources at one moment.
type Discovery struct {
	// Resources can be listed and watched, one version of each, sorted by group and name.
	Resources []Resource
	// Unwatchable cannot be listed and watched; each has its reason.
	Unwatchable []Unwatchable
	// Misnamed have names that no Kubernetes API can have, each with its fault, quoted and shortened. Resources does not
	// contain them.
	Misnamed []string
	// Cohabiting are served from the same storage as another resource. Resources does not contain them.
	Cohabiting []Cohabiting
	// Failed are the group versions whose discovery failed. Their resources stay as they were.
	Failed map[schema.GroupVersion]error
	// Served are the group versions whose discovery succeeded.
	Served map[schema.GroupVersion]bool
}

// Unwatchable is a resource that cannot be recorded by a list and a watch.
type Unwatchable struct {
	Resource Resource
	Reason   string
}

// Cohabiting is a second name for the objects of another resource.
type Cohabiting struct {
	Resource Resource
	Kept     schema.GroupResource
}

// Discover returns the server's resources. It selects each resource's version in use, if the server still serves it, else
// the server's preferred version. If some groups fail, the result says so; the error is for a failure of the whole
// discovery.
func (c *Client) Discover(ctx context.Context, inUse map[schema.GroupResource]string) (*Discovery, error) {
	groups, lists, err := c.groupsAndResources(ctx)
	d := &Discovery{Failed: map[schema.GroupVersion]error{}, Served: map[schema.GroupVersion]bool{}}
	if partial := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &partial) {
		d.Failed = partial.Groups
	} else if err != nil {
		return nil, explain("discovery of "+c.Host(), c.inFull(ctx, err))
	}
	if len(lists) == 0 && len(d.Failed) == 0 {
		return nil, fmt.Errorf("discovery of %s: the server offers no resources at all", c.Host())
	}
	var found []Resource
	found, d.Misnamed = wellNamed(choose(groups, lists, inUse, d.Served))
	d.sort(found)
	return d, nil
}

// groupsAndResources requests everything at once. If that answer is too large, it requests each group separately. Then only
// the group with the large answer fails.
func (c *Client) groupsAndResources(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := c.discovery.ServerGroupsAndResourcesWithContext(ctx)
	if large := (*AnswerTooLargeError)(nil); !errors.As(err, &large) {
		return groups, lists, err
	}
	each := discovery.NewDiscoveryClient(c.rest)
	each.UseLegacyDiscovery = true
	return each.ServerGroupsAndResourcesWithContext(ctx)
}

// inFull repeats the request to get the server's answer, because client-go's discovery omits it from its errors.
func (c *Client) inFull(ctx context.Context, err error) error {
	if !apierrors.IsUnexpectedServerError(err) {
		return err
	}
	for _, path := range []string{"/api", "/apis"} {
		if _, said := c.raw(ctx, path, acceptAggregated); said != nil {
			return said
		}
	}
	return err
}

// choose picks one version of each resource. It adds the group versions of the lists to served.
func choose(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, inUse map[schema.GroupResource]string, served map[schema.GroupVersion]bool) []Resource {
	byVersion := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, list := range lists {
		if gv, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			byVersion[gv] = list
			served[gv] = true
		}
	}
	chosen := map[schema.GroupResource]Resource{}
	for _, group := range groups {
		for _, gv := range versions(group) {
			for _, r := range resources(gv, byVersion[gv]) {
				_, taken := chosen[r.GroupResource()]
				if !taken || inUse[r.GroupResource()] == r.Version {
					chosen[r.GroupResource()] = r
				}
			}
		}
	}
	result := make([]Resource, 0, len(chosen))
	for _, r := range chosen {
		result = append(result, r)
	}
	slices.SortFunc(result, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return result
}

// versions returns the group's versions, the preferred one first.
func versions(group *metav1.APIGroup) []schema.GroupVersion {
	gvs := []schema.GroupVersion{{Group: group.Name, Version: group.PreferredVersion.Version}}
	for _, version := range group.Versions {
		if version.Version != group.PreferredVersion.Version {
			gvs = append(gvs, schema.GroupVersion{Group: group.Name, Version: version.Version})
		}
	}
	return gvs
}

// resources returns the resources of one group version without subresources, because a change made through a subresource is
// a change of its parent.
func resources(gv schema.GroupVersion, list *metav1.APIResourceList) []Resource {
	if list == nil {
		return nil
	}
	var result []Resource
	for _, api := range list.APIResources {
		if strings.Contains(api.Name, "/") {
			continue
		}
		result = append(result, Resource{
			Group: gv.Group, Version: gv.Version, Name: api.Name, Singular: api.SingularName, Kind: api.Kind,
			Namespaced: api.Namespaced, Verbs: api.Verbs, ShortNames: api.ShortNames, Categories: api.Categories,
		})
	}
	return result
}

// sort distributes the resources over Resources, Unwatchable and Cohabiting.
func (d *Discovery) sort(found []Resource) {
	watchable := map[schema.GroupResource]bool{}
	for _, r := range found {
		watchable[r.GroupResource()] = r.hasVerb("list") && r.hasVerb("watch")
	}
	for _, r := range found {
		if kept, ok := d.cohabits(r.GroupResource(), watchable); ok {
			d.Cohabiting = append(d.Cohabiting, Cohabiting{r, kept})
			continue
		}
		switch {
		case !r.hasVerb("list"):
			d.Unwatchable = append(d.Unwatchable, Unwatchable{r, "the server does not offer to list it"})
		case !r.hasVerb("watch"):
			d.Unwatchable = append(d.Unwatchable, Unwatchable{r, "the server does not offer to watch it"})
		default:
			d.Resources = append(d.Resources, r)
		}
	}
}

// cohabits reports whether a preferred resource has the same storage as this one, and returns it. A preferred resource
// whose group could not be discovered counts, because it may exist.
func (d *Discovery) cohabits(gr schema.GroupResource, watchable map[schema.GroupResource]bool) (schema.GroupResource, bool) {
	groups := cohabiting.Groups(gr.Resource)
	for _, group := range groups[:max(0, slices.Index(groups, gr.Group))] {
		better := schema.GroupResource{Group: group, Resource: gr.Resource}
		if watchable[better] || d.groupFailed(group) {
			return better, true
		}
	}
	return schema.GroupResource{}, false
}

// groupFailed reports whether any version of the group could not be discovered.
func (d *Discovery) groupFailed(group string) bool {
	for gv := range d.Failed {
		if gv.Group == group {
			return true
		}
	}
	return false
}
