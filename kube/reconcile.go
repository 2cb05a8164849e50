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
	f.unsure.round++
	for _, gr := range f.catalog.candidates(f.unsure) {
		if err := f.reconcile(ctx, gr); err != nil {
			f.options.Log.Warn("resource discovery failed; will retry", "resource", gr.String(), "error", err)
			f.queue.AddRateLimited(gr)
		}
	}
	f.options.OnDiscovery(ctx, d)
	if f.unsure.round == 1 {
		close(f.synced)
	}
	f.schedule()
	return nil
}

// warnOfMisnamed warns once about invalid names, until the set of names changes.
func (f *Follower) warnOfMisnamed(misnamed []string) {
	if len(misnamed) > 0 && !slices.Equal(misnamed, f.misnamed) {
		const shown = 5
		f.options.Log.Warn("discovery has resources that are not recorded, because no Kubernetes API can have their names; repair or remove the APIService that serves them",
			"count", len(misnamed), "first", misnamed[:min(shown, len(misnamed))])
	}
	f.misnamed = misnamed
}

// schedule queues the next discovery.
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

// reconcile compares one resource with the catalog's verdict, and calls the handler if something changed.
func (f *Follower) reconcile(ctx context.Context, gr schema.GroupResource) error {
	want, since, v := f.catalog.judge(gr)
	if v == unclaimed {
		if undefined, err := f.undefined(ctx, want); !undefined {
			return err
		}
	}
	if r, ok := f.catalog.recorded[gr]; ok {
		if resolved, err := f.reconcileRecorded(ctx, r, v); err != nil || !resolved {
			return err
		}
		delete(f.catalog.recorded, gr)
	}
	current, known := f.catalog.announced[gr]
	at := f.definitions.absentAt(gr.String())
	switch missed := f.definitions.lastUnhandled(gr.String()); {
	case v == gone && missed != nil && at != "":
		// The definition is gone, so its objects can no longer be read.
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
		// I5: if a definition is deleted and created again, its resource begins a new life.
		if err := f.remove(ctx, current, ""); err != nil {
			return err
		}
		return f.add(ctx, want, since)
	}
	return f.change(ctx, current, want, v)
}

// reconcileRecorded reports to the handler if a resource of the earlier run is no longer served. It returns resolved if the
// outcome is known. If another definition serves the resource now, lists will show the rest.
func (f *Follower) reconcileRecorded(ctx context.Context, r Resource, v verdict) (resolved bool, err error) {
	gr, at := r.GroupResource(), ""
	switch {
	case v == keep, v == unoffered && !f.unsure.confirmed(gr, v):
		return false, nil
	case v == gone:
		at = f.definitions.absentAt(gr.String())
		if at != "" && f.definitions.lastUnhandled(gr.String()) != nil {
			return true, nil // The report about that definition covers this one, too.
		}
	case v != unoffered:
		return true, nil
	}
	err = f.remove(ctx, r, at)
	return err == nil, err
}

// undefined reports whether no definition defines an unclaimed resource. Three things must hold: a later discovery still
// offers it, the server serves it, and the server has no definition of it. The watches can be late by more than one
// discovery. Discovery can be late, too: it can still offer a resource whose definition was deleted.
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
		f.catalog.recorded[r.GroupResource()] = r // Added may have done a part before it failed.
		return fmt.Errorf("added %s: %w", r, err)
	}
	f.announce(r)
	return nil
}

// announce notes that the handler follows the resource in this form.
func (f *Follower) announce(r Resource) {
	gr := r.GroupResource()
	f.unsure.forget(gr)
	f.catalog.announced[gr] = r
	f.definitions.markHandled(gr.String(), r.DefinitionUID)
}

func (f *Follower) remove(ctx context.Context, r Resource, at string) error {
	if err := f.handler.Removed(ctx, r, at); err != nil {
		return fmt.Errorf("removed %s: %w", r, err)
	}
	gr := r.GroupResource()
	delete(f.catalog.announced, gr)
	f.unsure.forget(gr)
	if at != "" {
		f.definitions.markHandled(gr.String(), r.DefinitionUID)
	}
	return nil
}

func (f *Follower) change(ctx context.Context, before, after Resource, v verdict) error {
	gr := before.GroupResource()
	// A caller that stores no digests gives none to compare with.
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
