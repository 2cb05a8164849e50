package kube

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errUndiscovered is the failure of a group version that has an APIService, but is missing from discovery. An API server
// that has just started may not know the group version yet.
var errUndiscovered = errors.New("its APIService exists, but discovery does not list it")

// catalog holds the announced resources, the resources that an earlier run recorded, and the last discovery. The follower's
// worker owns it. It may read the two caches at any time.
type catalog struct {
	definitions *extractCache[definition]
	services    *extractCache[service]
	announced   map[schema.GroupResource]Resource
	recorded    map[schema.GroupResource]Resource // of the earlier run, or from a failed Added; removed once the handler knows the outcome
	seen        *Discovery
}

func newCatalog(definitions *extractCache[definition], services *extractCache[service], recorded []Resource) *catalog {
	c := &catalog{
		definitions: definitions, services: services,
		announced: map[schema.GroupResource]Resource{}, recorded: map[schema.GroupResource]Resource{},
	}
	for _, r := range recorded {
		c.recorded[r.GroupResource()] = r
	}
	return c
}

// expectsMore reports whether discovery of an expected group failed. If an APIService is not available, its group is not
// expected: the watch of APIServices shows when it is back.
func (c *catalog) expectsMore() bool {
	for gv := range c.seen.Failed {
		if e := c.services.get(serviceName(gv)); e == nil || e.value.available {
			return true
		}
	}
	return false
}

// inUse returns the versions in which resources were announced.
func (c *catalog) inUse() map[schema.GroupResource]string {
	versions := make(map[schema.GroupResource]string, len(c.announced))
	for gr, r := range c.announced {
		versions[gr] = r.Version
	}
	return versions
}

// failUndiscovered marks a group version as failed if the aggregator should serve it and does not list it. An APIService
// that is not available is stale in discovery anyway.
func (c *catalog) failUndiscovered(d *Discovery) {
	if c.services.health.err() != nil {
		return
	}
	for _, e := range c.services.all() {
		gv := e.value.groupVersion
		expected := e.value.origin == originBuiltIn || e.value.origin == originService
		if expected && !d.Served[gv] && d.Failed[gv] == nil {
			d.Failed[gv] = errUndiscovered
		}
	}
}

// candidates returns all resources that are known or unconfirmed.
func (c *catalog) candidates(unsure *sightings) []schema.GroupResource {
	all := map[schema.GroupResource]bool{}
	for gr := range c.announced {
		all[gr] = true
	}
	for gr := range c.recorded {
		all[gr] = true
	}
	for gr := range unsure.first {
		all[gr] = true
	}
	for _, r := range c.seen.Resources {
		all[r.GroupResource()] = true
	}
	for _, e := range slices.Concat(c.definitions.all(), c.definitions.allUnhandled()) {
		all[e.value.groupResource()] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// verdict is the catalog's decision about a resource.
type verdict int

const (
	keep      verdict = iota // undecided: the resource stays as it is
	served                   // its definition serves it
	offered                  // discovery offers it; another discovery must confirm it before a change counts
	gone                     // its definition is gone, or does not serve it
	unclaimed                // discovery offers it, but no APIService names its server; another discovery must confirm it
	unoffered                // discovery does not offer it; another discovery must confirm it
)

// judge decides about a resource. It also returns the resource to use, and its since if a definition serves it.
func (c *catalog) judge(gr schema.GroupResource) (Resource, string, verdict) {
	current, known := c.announced[gr]
	if c.definitions.health.err() == nil {
		if e := c.definitions.get(gr.String()); e != nil {
			return judgeDefinition(e, current, known)
		}
		if current.DefinitionUID != "" || c.recorded[gr].DefinitionUID != "" || c.definitions.lastUnhandled(gr.String()) != nil {
			return Resource{}, "", gone
		}
	}
	r, v := c.judgeDiscovery(gr, current, known)
	return r, "", v
}

// judgeDefinition uses only the definition, because discovery lags behind it.
func judgeDefinition(e *extract[definition], current Resource, known bool) (Resource, string, verdict) {
	r, ok := e.value.in(current.Version)
	switch {
	case ok && e.value.established:
		return r, e.since, served
	case known && current.DefinitionUID == e.uid && ok:
		// A resource that was served stays served during a conflict of names.
		return Resource{}, "", keep
	}
	return Resource{}, "", gone
}

// judgeDiscovery decides by the last discovery. If the discovery of the group failed, the verdict is keep.
func (c *catalog) judgeDiscovery(gr schema.GroupResource, current Resource, known bool) (Resource, verdict) {
	if known && c.seen.Failed[current.GroupVersion()] != nil {
		return Resource{}, keep
	}
	for _, r := range c.seen.Resources {
		if r.GroupResource() != gr {
			continue
		}
		if !known {
			return r, c.judgeNew(r.GroupVersion())
		}
		r.DefinitionUID, r.Schema = current.DefinitionUID, current.Schema
		return r, offered
	}
	if c.seen.groupFailed(gr.Group) {
		return Resource{}, keep
	}
	return Resource{}, unoffered
}

// judgeNew decides about a resource that discovery offers and no known definition defines. Discovery can be ahead of the
// watches of definitions and APIServices, or behind them. If the APIService belongs to a definition, that definition is
// still to come, or has gone. An aggregator has an APIService for each group version except its own. "v1" always has one.
func (c *catalog) judgeNew(gv schema.GroupVersion) verdict {
	if c.definitions.health.err() != nil || c.services.health.err() != nil {
		return offered
	}
	aggregated := c.services.get(serviceName(schema.GroupVersion{Version: "v1"})) != nil
	switch e := c.services.get(serviceName(gv)); {
	case e != nil && e.value.origin == originDefinition:
		return keep
	case e == nil && aggregated && gv != serviceResource.GroupVersion():
		return unclaimed
	}
	return offered
}
