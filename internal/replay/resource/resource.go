package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kuberewind/kuberewind/history"
)

// A Resource is a resource of the record, with its names at an instant.
type Resource struct {
	Group, Version, Resource string
	Kind, Singular           string
	ShortNames, Categories   []string
	Namespaced               bool
	// Streams are the streams of the resource: one, or one for each namespace to which the recording is limited.
	Streams []history.Stream
	// Served is true if discovery had the resource at the instant.
	Served bool
}

// GroupResource returns the group and the name.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// String returns the name and the group, as in deployments.apps.
func (r *Resource) String() string { return r.GroupResource().String() }

// StreamIDs returns the numbers of the streams that may hold objects of a namespace; for "", of all streams.
func (r *Resource) StreamIDs(namespace string) []int32 {
	ids := []int32{}
	for _, s := range r.Streams {
		if s.Scope == "" || namespace == "" || s.Scope == namespace {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// A Target is what a user names: a resource, and objects of it by name. Without names, it means all objects.
type Target struct {
	Resource *Resource
	Names    []string
}

// A Catalog holds the resources that a user can name at an instant.
type Catalog struct {
	At        time.Time
	Resources []*Resource
	// unrecorded holds served resources that are not in the record.
	unrecorded []history.Resource

	Mapper     meta.RESTMapper
	categories restmapper.CategoryExpander
	Discovery  discovery.CachedDiscoveryInterface
	warn       func(string)
}

// ReadCatalog reads the resources of the record, with the names that the server used at a time. warn receives warnings about
// names, such as ambiguous ones.
func ReadCatalog(ctx context.Context, rec *history.Record, at time.Time, warn func(string)) (*Catalog, error) {
	streams, err := rec.Streams(ctx)
	if err != nil {
		return nil, err
	}
	served, err := rec.Server().Discovery(ctx, at)
	if err != nil {
		return nil, err
	}
	c := &Catalog{At: at, warn: warn}
	c.fill(served, streams)
	c.Mapper, c.categories, err = c.names()
	return c, err
}

// fill combines the served resources with the recorded ones. Served resources come first, in the order of discovery; the
// first one with a short name owns it. Recorded resources that discovery does not have follow.
func (c *Catalog) fill(served []history.Resource, streams []history.Stream) {
	recorded := map[schema.GroupResource][]history.Stream{}
	for _, s := range streams {
		recorded[s.GroupResource()] = append(recorded[s.GroupResource()], s)
	}
	chosen := map[schema.GroupResource]int{}
	for _, r := range served {
		gr := schema.GroupResource{Group: r.Group, Resource: r.Resource}
		if strings.Contains(r.Resource, "/") {
			continue
		}
		if len(recorded[gr]) == 0 {
			c.unrecorded = append(c.unrecorded, r)
			continue
		}
		made := &Resource{
			Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind, Singular: r.Singular, ShortNames: r.ShortNames,
			Categories: r.Categories, Namespaced: r.Namespaced, Streams: recorded[gr], Served: true,
		}
		switch i, taken := chosen[gr]; {
		case !taken:
			chosen[gr] = len(c.Resources)
			c.Resources = append(c.Resources, made)
		case r.Version == recorded[gr][0].Version:
			c.Resources[i] = made // the recorded version replaces another served version
		}
	}
	for _, s := range streams {
		if _, taken := chosen[s.GroupResource()]; taken {
			continue
		}
		chosen[s.GroupResource()] = len(c.Resources)
		c.Resources = append(c.Resources, &Resource{
			Group: s.Group, Version: s.Version, Resource: s.Resource, Kind: s.Kind, Singular: strings.ToLower(s.Kind),
			Namespaced: s.Namespaced, Streams: recorded[s.GroupResource()],
		})
	}
}

// names returns the tools with which kubectl resolves names: a mapper that knows plurals, singulars, kinds and short names,
// and the categories.
func (c *Catalog) names() (meta.RESTMapper, restmapper.CategoryExpander, error) {
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: ApiHost, Transport: c})
	if err != nil {
		return nil, nil, err
	}
	c.Discovery = orderedDiscovery{memory.NewMemCacheClient(client)}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(c.Discovery), c.Discovery, func(text string) { c.warn(strings.TrimPrefix(text, "Warning: ")) })
	return mapper, restmapper.NewDiscoveryCategoryExpander(c.Discovery), nil
}

// Find returns the resource of a name and group, or nil.
func (c *Catalog) Find(gr schema.GroupResource) *Resource {
	for _, r := range c.Resources {
		if r.GroupResource() == gr {
			return r
		}
	}
	return nil
}

// Lookup returns the resource of one word: a plural, singular, kind or short name, optionally with version and group.
func (c *Catalog) Lookup(word string) (*Resource, error) {
	mapping, err := c.mapping(word)
	if err != nil {
		return nil, err
	}
	if r := c.Find(mapping.Resource.GroupResource()); r != nil {
		return r, nil
	}
	return nil, c.unknown(word)
}

// mapping resolves a word like kubectl. In kubectl, it is a private method of cli-runtime's resource.Builder.
func (c *Catalog) mapping(word string) (*meta.RESTMapping, error) {
	full, groupResource := schema.ParseResourceArg(word)
	gvk := schema.GroupVersionKind{}
	if full != nil {
		gvk, _ = c.Mapper.KindFor(*full)
	}
	if gvk.Empty() {
		gvk, _ = c.Mapper.KindFor(groupResource.WithVersion(""))
	}
	if !gvk.Empty() {
		return c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	fullKind, groupKind := schema.ParseKindArg(word)
	if fullKind != nil {
		if mapping, err := c.Mapper.RESTMapping(fullKind.GroupKind(), fullKind.Version); err == nil {
			return mapping, nil
		}
	}
	if mapping, err := c.Mapper.RESTMapping(groupKind); err == nil {
		return mapping, nil
	}
	return nil, c.unknown(word)
}

// Targets parses arguments like kubectl: TYPE[,TYPE] [NAME…], or TYPE/NAME….
func (c *Catalog) Targets(args []string) ([]Target, error) {
	if len(args) == 0 {
		return nil, nil
	}
	slashed := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "/") })
	if !slashed {
		resources, err := c.list(args[0])
		if err != nil {
			return nil, err
		}
		if len(resources) > 1 && len(args) > 1 {
			return nil, errors.New("a name needs one type; use TYPE/NAME to name objects of several types")
		}
		var targets []Target
		for _, r := range resources {
			targets = append(targets, Target{Resource: r, Names: args[1:]})
		}
		return targets, nil
	}
	var targets []Target
	for _, arg := range args {
		word, name, ok := strings.Cut(arg, "/")
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is not TYPE/NAME like the other arguments: use this form for all arguments, or for none", arg)
		case word == "" || name == "" || strings.Contains(name, "/"):
			return nil, fmt.Errorf("%q is not TYPE/NAME: use one type, one slash, one name", arg)
		}
		r, err := c.Lookup(word)
		if err != nil {
			return nil, err
		}
		targets = append(targets, Target{Resource: r, Names: []string{name}})
	}
	return targets, nil
}

// list parses a list of types and categories, and returns each type once.
func (c *Catalog) list(words string) ([]*Resource, error) {
	var all []*Resource
	for word := range strings.SplitSeq(words, ",") {
		expanded, isCategory := c.categories.Expand(word)
		if !isCategory {
			r, err := c.Lookup(word)
			if err != nil {
				return nil, err
			}
			expanded = []schema.GroupResource{r.GroupResource()}
		}
		for _, gr := range expanded {
			if r := c.Find(gr); r != nil && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}
