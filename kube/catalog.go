package kube

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errUndiscovered is the failure of a group version that has an APIService and is
// missing from discovery: an API server that has just started may not know it yet.
var errUndiscovered = errors.New("its APIService exists, but discovery does not list it")

// catalog is what is known of the resources: what was announced, what an earlier run recorded, and what the server shows now.
// The follower's worker owns it. It may ask the albums at any time.
type catalog struct {
	definitions *album[definition]
	services    *album[service]
	announced   map[schema.GroupResource]Resource
	recorded    map[schema.GroupResource]Resource // in the earlier run, or perhaps, and nothing was told of them since
	seen        *Discovery
}

func newCatalog(definitions *album[definition], services *album[service], recorded []Resource) *catalog {
	c := &catalog{
		definitions: definitions, services: services,
		announced: map[schema.GroupResource]Resource{}, recorded: map[schema.GroupResource]Resource{},
	}
	for _, r := range recorded {
		c.recorded[r.GroupResource()] = r
	}
	return c
}

// expectsMore reports whether a group could not be discovered that should be there.
// One whose APIService says that it is not available is not waited for: that
// APIService is watched.
func (c *catalog) expectsMore() bool {
	for gv := range c.seen.Failed {
		if e := c.services.get(serviceName(gv)); e == nil || e.value.available {
			return true
		}
	}
	return false
}

// inUse are the versions in which resources were announced.
func (c *catalog) inUse() map[schema.GroupResource]string {
	versions := make(map[schema.GroupResource]string, len(c.announced))
	for gr, r := range c.announced {
		versions[gr] = r.Version
	}
	return versions
}

// failUndiscovered counts as failed what the aggregator should serve and does not
// list. An APIService that is not available is stale in discovery anyway.
func (c *catalog) failUndiscovered(d *Discovery) {
	if c.services.access.trouble() != nil {
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

// candidates are all resources of which anything is known, or not sure yet.
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
	for _, e := range slices.Concat(c.definitions.all(), c.definitions.allMissed()) {
		all[e.value.groupResource()] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// verdict is what is known of a resource.
type verdict int

const (
	keep      verdict = iota // nothing can be said: it stays as it is
	served                   // by its definition
	offered                  // by discovery, to be confirmed before a change counts
	gone                     // with its definition
	unclaimed                // offered by discovery, but no APIService names the server: to be confirmed
	unoffered                // missing from discovery, to be confirmed
)

// judge says what is to be of a resource.
func (c *catalog) judge(gr schema.GroupResource) (Resource, string, verdict) {
	current, known := c.announced[gr]
	if c.definitions.access.trouble() == nil {
		if e := c.definitions.get(gr.String()); e != nil {
			return judgeDefinition(e, current, known)
		}
		if current.DefinitionUID != "" || c.recorded[gr].DefinitionUID != "" || c.definitions.lastMissed(gr.String()) != nil {
			return Resource{}, "", gone
		}
	}
	r, v := c.judgeDiscovery(gr, current, known)
	return r, "", v
}

// judgeDefinition trusts a definition alone: discovery lags behind it.
func judgeDefinition(e *extract[definition], current Resource, known bool) (Resource, string, verdict) {
	r, ok := e.value.in(current.Version)
	switch {
	case ok && e.value.established:
		return r, e.since, served
	case known && current.DefinitionUID == e.uid && ok:
		// Served once, it stays served while its names are fought over.
		return Resource{}, "", keep
	}
	return Resource{}, "", gone
}

// judgeDiscovery says what discovery says, as far as it is to be trusted.
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

// judgeNew says whether to announce what discovery offers and no known definition does. Discovery can be ahead of the
// watches of definitions and of APIServices, and behind them. The APIService tells whether a definition is to come, or
// has gone. An aggregator has one for each group version but its own, "v1" among them.
func (c *catalog) judgeNew(gv schema.GroupVersion) verdict {
	if c.definitions.access.trouble() != nil || c.services.access.trouble() != nil {
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
