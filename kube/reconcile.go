package kube

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rediscover makes one complete discovery and reconciles every resource with it.
func (f *Follower) rediscover(ctx context.Context) error {
	d, err := f.client.Discover(ctx, f.catalog.inUse())
	if err != nil {
		return err
	}
	f.catalog.failUndiscovered(d)
	f.warnOfMisnamed(d.Misnamed)
	f.catalog.seen, f.started = d, true
	f.unsure.pass++
	for _, gr := range f.catalog.candidates(f.unsure) {
		if err := f.reconcile(ctx, gr); err != nil {
			f.options.Log.Warn("will be tried again", "resource", gr.String(), "error", err)
			f.queue.AddRateLimited(gr)
		}
	}
	f.options.OnDiscovery(ctx, d)
	if f.unsure.pass == 1 {
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
	if len(f.unsure.first) > 0 {
		next = min(next, f.confirm)
	}
	if f.catalog.expectsMore() {
		next = min(next, incompleteAfter<<min(f.waits, 10))
		f.waits++
	} else {
		f.waits = 0
	}
	f.queue.AddAfter(everything, next)
}

// reconcile gives the handler the news of one resource.
func (f *Follower) reconcile(ctx context.Context, gr schema.GroupResource) error {
	want, since, v := f.catalog.judge(gr)
	if v == unclaimed {
		if undefined, err := f.undefined(ctx, want); !undefined {
			return err
		}
	}
	if r, ok := f.catalog.recorded[gr]; ok {
		if settled, err := f.reconcileRecorded(ctx, r, v); err != nil || !settled {
			return err
		}
		delete(f.catalog.recorded, gr)
	}
	current, known := f.catalog.announced[gr]
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
		f.unsure.forget(gr)
		return nil
	case !known:
		return f.add(ctx, want, since)
	case v == gone:
		return f.remove(ctx, current, at)
	case v == unoffered && f.unsure.confirmed(gr, v):
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
	case v == keep, v == unoffered && !f.unsure.confirmed(gr, v):
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
	if !f.unsure.confirmed(r.GroupResource(), unclaimed) {
		return false, nil
	}
	if err := f.client.served(ctx, r); err != nil {
		return false, err
	}
	defined, err := f.client.defined(ctx, r.GroupResource())
	return err == nil && !defined, err
}

func (f *Follower) add(ctx context.Context, r Resource, since string) error {
	if since != "" {
		if err := f.client.served(ctx, r); err != nil {
			return err
		}
	}
	if err := f.handler.Added(ctx, r, since); err != nil {
		f.catalog.recorded[r.GroupResource()] = r // as far as it came
		return fmt.Errorf("added %s: %w", r, err)
	}
	f.announce(r)
	return nil
}

// announce notes that a resource is followed as it is.
func (f *Follower) announce(r Resource) {
	gr := r.GroupResource()
	f.unsure.forget(gr)
	f.catalog.announced[gr] = r
	f.definitions.take(gr.String(), r.DefinitionUID)
}

func (f *Follower) remove(ctx context.Context, r Resource, at string) error {
	if err := f.handler.Removed(ctx, r, at); err != nil {
		return fmt.Errorf("removed %s: %w", r, err)
	}
	gr := r.GroupResource()
	delete(f.catalog.announced, gr)
	f.unsure.forget(gr)
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
	if v == offered && !f.unsure.confirmed(gr, v) {
		return nil
	}
	if err := f.handler.Changed(ctx, before, after); err != nil {
		return fmt.Errorf("changed %s: %w", after, err)
	}
	f.announce(after)
	return nil
}
