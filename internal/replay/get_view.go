package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/indexer"
)

// A view is what the record holds at one instant, as far as it was loaded.
type view struct {
	env     *Env
	rec     *Record
	catalog *Catalog
	point   history.Point
	objects *indexer.Snapshot
	chosen  *chosen

	mu      sync.Mutex // protects what follows
	damaged map[objectKey]*history.DamagedError
}

type objectKey struct {
	resource schema.GroupResource
	key      string // "namespace/name", or "name"
}

// look finds an instant for what arguments name, in a namespace or, if it is "", in all. No arguments name everything.
func (e *Env) look(ctx context.Context, rec *Record, at history.Instant, args []string, namespace string) (*view, []Target, error) {
	instant, known, err := e.timeOf(ctx, rec, at)
	if err != nil {
		return nil, nil, err
	}
	catalog, err := e.Catalog(ctx, rec, instant)
	if err != nil {
		return nil, nil, err
	}
	targets, err := catalog.Targets(args)
	if err != nil {
		return nil, nil, err
	}
	if len(args) == 0 {
		for _, r := range catalog.Resources {
			targets = append(targets, Target{Resource: r})
		}
	}
	point, err := rec.Resolve(ctx, at, history.Scope{Streams: streamsOf(targets, namespace)})
	if err != nil {
		return nil, nil, err
	}
	if !known {
		// Of a resource version, it is not known when it was before it is known of what.
		if catalog, err = e.Catalog(ctx, rec, point.Time); err != nil {
			return nil, nil, err
		}
	}
	e.Notes(point.Notes)
	for _, t := range targets {
		e.noteConfined(t.Resource, namespace)
	}
	return &view{
		env: e, rec: rec, catalog: catalog, point: point, damaged: map[objectKey]*history.DamagedError{},
		objects: indexer.NewSnapshot(nil, indexer.Options{}), chosen: newChosen(targets),
	}, targets, nil
}

// streamsOf is never nil, which would mean all.
func streamsOf(targets []Target, namespace string) []int32 {
	ids := []int32{}
	for _, t := range targets {
		if t.Resource.Namespaced {
			ids = append(ids, t.Resource.StreamIDs(namespace)...)
		} else {
			ids = append(ids, t.Resource.StreamIDs("")...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// noteConfined says where a resource was recorded, if not everywhere.
func (e *Env) noteConfined(r *Resource, namespace string) {
	var scopes []string
	for _, s := range r.Streams {
		if s.Scope == "" || s.Scope == namespace {
			return
		}
		scopes = append(scopes, s.Scope)
	}
	if len(scopes) > 0 {
		e.Note(fmt.Sprintf("%s are recorded in these namespaces only: %s", r, strings.Join(scopes, ", ")))
	}
}

// load rebuilds the objects of targets.
func (v *view) load(ctx context.Context, targets []Target, namespace string) error {
	for _, scope := range scopesOf(targets, namespace) {
		if err := v.rebuild(ctx, v.point, scope, v.keep); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) keep(o history.Object) error {
	if !v.chosen.has(o.Stream.GroupResource(), o.Name) {
		return nil
	}
	return v.objects.AddDoc(o.Stream.GroupResource(), o.Namespace, o.Name, o.RV, o.Doc)
}

// rebuild emits the objects of a scope, and remembers those that are damaged.
func (v *view) rebuild(ctx context.Context, point history.Point, scope history.Scope, emit func(history.Object) error) error {
	progress := v.env.progress("rebuilding the cluster at " + point.Instant.String())
	defer progress.end()
	stats, err := v.rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: v.noteDamage, Progress: progress.tell}, emit)
	if err != nil {
		return err
	}
	v.env.Notes(stats.Notes)
	return nil
}

func (v *view) noteDamage(d *history.DamagedError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := objectKey{key: d.Name}
	if d.Namespace != "" {
		key.key = d.Namespace + "/" + d.Name
	}
	if d.Stream != nil {
		key.resource = d.Stream.GroupResource()
		if !v.chosen.has(key.resource, d.Name) {
			return
		}
	}
	v.damaged[key] = d
}

// damage is what could not be answered, in the order of the record; nil if there is none.
func (v *view) damage() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []*history.DamagedError
	for _, d := range v.damaged {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *history.DamagedError) int { return int(a.Seq - b.Seq) })
	var errs []error
	for _, d := range all {
		errs = append(errs, fmt.Errorf("left out: %w", d))
	}
	return errors.Join(errs...)
}

// maxNames is how many names are looked up one by one; with more, all objects of the resource are read.
const maxNames = 20

// scopesOf joins targets into as few readings as there can be. They may give more than the targets name: chosen tells.
func scopesOf(targets []Target, namespace string) []history.Scope {
	var scopes []history.Scope
	all := map[bool]*history.Scope{}
	for _, t := range targets {
		scope := history.Scope{Namespace: namespace, Streams: t.Resource.StreamIDs(namespace)}
		if !t.Resource.Namespaced {
			scope = history.Scope{Streams: t.Resource.StreamIDs("")}
		}
		switch {
		case len(scope.Streams) == 0:
		case len(t.Names) > 0 && len(t.Names) <= maxNames:
			for _, name := range t.Names {
				scope.Name = name
				scopes = append(scopes, scope)
			}
		case all[t.Resource.Namespaced] == nil:
			all[t.Resource.Namespaced] = &scope
		default:
			known := all[t.Resource.Namespaced]
			known.Streams = append(known.Streams, scope.Streams...)
		}
	}
	for _, namespaced := range []bool{true, false} {
		if scope := all[namespaced]; scope != nil {
			slices.Sort(scope.Streams)
			scope.Streams = slices.Compact(scope.Streams)
			scopes = append(scopes, *scope)
		}
	}
	return scopes
}

// Resources of which single objects are asked for beside what was asked.
var (
	definitionsResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	namespacesResource  = schema.GroupResource{Resource: "namespaces"}
)

// definition gives the CustomResourceDefinition of a resource as it was, nil if there was none.
func (v *view) definition(ctx context.Context, resource schema.GroupResource) ([]byte, error) {
	return v.single(ctx, definitionsResource, resource.String())
}

// single gives a cluster-scoped object that need not have been asked for, nil if there was none.
func (v *view) single(ctx context.Context, resource schema.GroupResource, name string) ([]byte, error) {
	r := v.catalog.Find(resource)
	if r == nil {
		return nil, nil
	}
	point := v.point
	scope := history.Scope{Streams: r.StreamIDs(""), Name: name}
	if point.RV != "" {
		// A resource version of one resource says nothing of another: its time does.
		var err error
		if point, err = v.rec.Resolve(ctx, history.At(point.Time), scope); err != nil {
			return nil, err
		}
	}
	var doc []byte
	_, err := v.rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: v.noteDamage}, func(o history.Object) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		doc = o.Doc
		return nil
	})
	return doc, err
}
