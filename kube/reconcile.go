package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errUndiscovered is the failure of a group version that has an APIService and is
// missing from discovery: an API server that has just started may not know it yet.
var errUndiscovered = errors.New("its APIService exists, but discovery does not list it")

// rediscover makes one complete discovery and reconciles every resource with it.
func (f *Follower) rediscover(ctx context.Context) error {
	d, err := f.client.Discover(ctx, f.inUse())
	if err != nil {
		return err
	}
	f.failUndiscovered(d)
	f.warnOfMisnamed(d.Misnamed)
	f.seen, f.pass, f.started = d, f.pass+1, true
	for _, gr := range f.candidates() {
		if err := f.reconcile(ctx, gr); err != nil {
			f.options.Log.Warn("will be tried again", "resource", gr.String(), "error", err)
			f.queue.AddRateLimited(gr)
		}
	}
	f.options.OnDiscovery(ctx, d)
	if f.pass == 1 {
		close(f.synced)
	}
	f.schedule()
	return nil
}

// warnOfMisnamed warns once of names for as long as discovery shows the same ones.
func (f *Follower) warnOfMisnamed(misnamed []string) {
	if len(misnamed) > 0 && !slices.Equal(misnamed, f.misnamed) {
		const shown = 5
		f.options.Log.Warn("discovery has resources that are not recorded, because no Kubernetes API can have their names; repair or remove the APIService that serves them",
			"count", len(misnamed), "first", misnamed[:min(shown, len(misnamed))])
	}
	f.misnamed = misnamed
}

// schedule asks for the next discovery.
func (f *Follower) schedule() {
	next := f.interval()
	if len(f.unsure) > 0 {
		next = min(next, f.confirm)
	}
	if f.expectsMore() {
		next = min(next, incompleteAfter<<min(f.waits, 10))
		f.waits++
	} else {
		f.waits = 0
	}
	f.queue.AddAfter(everything, next)
}

// expectsMore reports whether a group could not be discovered that should be there.
// One whose APIService says that it is not available is not waited for: that
// APIService is watched.
func (f *Follower) expectsMore() bool {
	for gv := range f.seen.Failed {
		if e := f.services.get(serviceName(gv)); e == nil || e.value.available {
			return true
		}
	}
	return false
}

func (f *Follower) inUse() map[schema.GroupResource]string {
	versions := make(map[schema.GroupResource]string, len(f.announced))
	for gr, r := range f.announced {
		versions[gr] = r.Version
	}
	return versions
}

// failUndiscovered counts as failed what the aggregator should serve and does not
// list. An APIService that is not available is stale in discovery anyway.
func (f *Follower) failUndiscovered(d *Discovery) {
	if f.services.trouble() != nil {
		return
	}
	for _, e := range f.services.all() {
		gv := e.value.groupVersion
		expected := e.value.origin == originBuiltIn || e.value.origin == originService
		if expected && !d.Served[gv] && d.Failed[gv] == nil {
			d.Failed[gv] = errUndiscovered
		}
	}
}

// candidates are all resources of which anything is known.
func (f *Follower) candidates() []schema.GroupResource {
	all := map[schema.GroupResource]bool{}
	for gr := range f.announced {
		all[gr] = true
	}
	for gr := range f.recorded {
		all[gr] = true
	}
	for gr := range f.unsure {
		all[gr] = true
	}
	for _, r := range f.seen.Resources {
		all[r.GroupResource()] = true
	}
	for _, e := range slices.Concat(f.definitions.all(), f.definitions.allMissed()) {
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

// sighting is a verdict that a later discovery has to confirm.
type sighting struct {
	verdict verdict
	pass    int // of the first discovery that gave it
}

// judge says what is to be of a resource.
func (f *Follower) judge(gr schema.GroupResource) (Resource, string, verdict) {
	current, known := f.announced[gr]
	if f.definitions.trouble() == nil {
		if e := f.definitions.get(gr.String()); e != nil {
			return judgeDefinition(e, current, known)
		}
		if current.DefinitionUID != "" || f.recorded[gr].DefinitionUID != "" || f.definitions.lastMissed(gr.String()) != nil {
			return Resource{}, "", gone
		}
	}
	r, v := f.judgeDiscovery(gr, current, known)
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
func (f *Follower) judgeDiscovery(gr schema.GroupResource, current Resource, known bool) (Resource, verdict) {
	if known && f.seen.Failed[current.GroupVersion()] != nil {
		return Resource{}, keep
	}
	for _, r := range f.seen.Resources {
		if r.GroupResource() != gr {
			continue
		}
		if !known {
			return r, f.judgeNew(r.GroupVersion())
		}
		r.DefinitionUID, r.Schema = current.DefinitionUID, current.Schema
		return r, offered
	}
	if f.seen.groupFailed(gr.Group) {
		return Resource{}, keep
	}
	return Resource{}, unoffered
}

// judgeNew says whether to announce what discovery offers and no known definition does. Discovery can be ahead of the
// watches of definitions and of APIServices, and behind them. The APIService tells whether a definition is to come, or
// has gone. An aggregator has one for each group version but its own, "v1" among them.
func (f *Follower) judgeNew(gv schema.GroupVersion) verdict {
	if f.definitions.trouble() != nil || f.services.trouble() != nil {
		return offered
	}
	aggregated := f.services.get(serviceName(schema.GroupVersion{Version: "v1"})) != nil
	switch e := f.services.get(serviceName(gv)); {
	case e != nil && e.value.origin == originDefinition:
		return keep
	case e == nil && aggregated && gv != serviceResource.GroupVersion():
		return unclaimed
	}
	return offered
}

// reconcile gives the handler the news of one resource.
func (f *Follower) reconcile(ctx context.Context, gr schema.GroupResource) error {
	want, since, v := f.judge(gr)
	if v == unclaimed {
		if undefined, err := f.undefined(ctx, want); !undefined {
			return err
		}
	}
	if r, ok := f.recorded[gr]; ok {
		if settled, err := f.reconcileRecorded(ctx, r, v); err != nil || !settled {
			return err
		}
		delete(f.recorded, gr)
	}
	current, known := f.announced[gr]
	at := f.definitions.missing(gr.String())
	switch missed := f.definitions.lastMissed(gr.String()); {
	case v == gone && missed != nil && at != "":
		// Nobody can read any more what it had.
		ended, ok := missed.value.in(current.Version)
		if !ok {
			ended = missed.value.resource
		}
		return f.remove(ctx, ended, at)
	case v == keep, !known && (v == gone || v == unoffered):
		delete(f.unsure, gr)
		return nil
	case !known:
		return f.add(ctx, want, since)
	case v == gone:
		return f.remove(ctx, current, at)
	case v == unoffered && f.confirmed(gr, v):
		return f.remove(ctx, current, "")
	case v == unoffered:
		return nil
	case want.DefinitionUID != current.DefinitionUID && current.DefinitionUID != "":
		// I5: a definition that was created again is another life of its resource.
		if err := f.remove(ctx, current, ""); err != nil {
			return err
		}
		return f.add(ctx, want, since)
	}
	return f.change(ctx, current, want, v)
}

// reconcileRecorded announces that a resource of the earlier run is not served any more, and reports whether its fate is known.
// If another definition serves it, lists will show the rest.
func (f *Follower) reconcileRecorded(ctx context.Context, r Resource, v verdict) (settled bool, err error) {
	gr, at := r.GroupResource(), ""
	switch {
	case v == keep, v == unoffered && !f.confirmed(gr, v):
		return false, nil
	case v == gone:
		at = f.definitions.missing(gr.String())
		if at != "" && f.definitions.lastMissed(gr.String()) != nil {
			return true, nil // News of that one are true of this one, too.
		}
	case v != unoffered:
		return true, nil
	}
	err = f.remove(ctx, r, at)
	return err == nil, err
}

// undefined reports whether an unclaimed resource comes from no definition. A later discovery must still offer it, the server must serve
// it, and have no definition of it. Watches can be late by more than one discovery, and so can discovery: it can still offer what went
// with its definition.
func (f *Follower) undefined(ctx context.Context, r Resource) (bool, error) {
	if !f.confirmed(r.GroupResource(), unclaimed) {
		return false, nil
	}
	if err := f.client.served(ctx, r); err != nil {
		return false, err
	}
	defined, err := f.client.defined(ctx, r.GroupResource())
	return err == nil && !defined, err
}

// confirmed reports whether an earlier discovery gave the same verdict, and no other one that needs to be confirmed came since.
func (f *Follower) confirmed(gr schema.GroupResource, v verdict) bool {
	first, ok := f.unsure[gr]
	if !ok || first.verdict != v {
		f.unsure[gr] = sighting{v, f.pass}
		return false
	}
	return f.pass > first.pass
}

func (f *Follower) add(ctx context.Context, r Resource, since string) error {
	if since != "" {
		if err := f.client.served(ctx, r); err != nil {
			return err
		}
	}
	if err := f.handler.Added(ctx, r, since); err != nil {
		f.recorded[r.GroupResource()] = r // as far as it came
		return fmt.Errorf("added %s: %w", r, err)
	}
	f.announce(r)
	return nil
}

// announce notes that a resource is followed as it is.
func (f *Follower) announce(r Resource) {
	gr := r.GroupResource()
	delete(f.unsure, gr)
	f.announced[gr] = r
	f.definitions.take(gr.String(), r.DefinitionUID)
}

func (f *Follower) remove(ctx context.Context, r Resource, at string) error {
	if err := f.handler.Removed(ctx, r, at); err != nil {
		return fmt.Errorf("removed %s: %w", r, err)
	}
	gr := r.GroupResource()
	delete(f.announced, gr)
	delete(f.unsure, gr)
	if at != "" {
		f.definitions.take(gr.String(), r.DefinitionUID)
	}
	return nil
}

func (f *Follower) change(ctx context.Context, before, after Resource, v verdict) error {
	gr := before.GroupResource()
	// A caller that does not keep digests has nothing to compare with.
	if before.Schema == "" {
		before.Schema = after.Schema
	}
	if before.Version == after.Version && before.Kind == after.Kind && before.Namespaced == after.Namespaced && before.Schema == after.Schema {
		f.announce(after)
		return nil
	}
	if v == offered && !f.confirmed(gr, v) {
		return nil
	}
	if err := f.handler.Changed(ctx, before, after); err != nil {
		return fmt.Errorf("changed %s: %w", after, err)
	}
	f.announce(after)
	return nil
}
