package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/indexer"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
)

// A View holds the loaded objects of the record at one instant.
type View struct {
	Env     *env.Env
	Rec     *env.Record
	Catalog *resource.Catalog
	Point   history.Point
	Objects *indexer.Snapshot
	Chosen  *selector.Chosen

	mu      sync.Mutex // protects damaged
	damaged map[objectKey]*history.DamagedError
}

type objectKey struct {
	resource schema.GroupResource
	key      string // "namespace/name", or "name"
}

// Look resolves an instant for the arguments in a namespace, or in all if namespace is "". Without arguments, it takes all
// resources.
func Look(ctx context.Context, e *env.Env, rec *env.Record, at history.Instant, args []string, namespace string) (*View, []resource.Target, error) {
	instant, known, err := e.TimeOf(ctx, rec, at)
	if err != nil {
		return nil, nil, err
	}
	if err := e.NoteNamespace(ctx, rec, namespace); err != nil {
		return nil, nil, err
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, instant, e.Note)
	if err != nil {
		return nil, nil, err
	}
	targets, err := catalog.Targets(args)
	if err != nil {
		return nil, nil, err
	}
	if len(args) == 0 {
		for _, r := range catalog.Resources {
			targets = append(targets, resource.Target{Resource: r})
		}
	}
	point, err := rec.Resolve(ctx, at, history.Scope{Streams: resource.StreamsOf(targets, namespace)})
	if err != nil {
		return nil, nil, err
	}
	if !known {
		// The time of a resource version is only known with its resource.
		if catalog, err = resource.ReadCatalog(ctx, rec.Record, point.Time, e.Note); err != nil {
			return nil, nil, err
		}
	}
	e.Notes(point.Notes)
	for _, t := range targets {
		e.Note(t.Resource.Confined(namespace))
	}
	return &View{
		Env: e, Rec: rec, Catalog: catalog, Point: point, damaged: map[objectKey]*history.DamagedError{},
		Objects: indexer.NewSnapshot(nil, indexer.Options{}), Chosen: selector.NewChosen(targets),
	}, targets, nil
}

// Load rebuilds the objects of targets.
func (v *View) Load(ctx context.Context, targets []resource.Target, namespace string) error {
	for _, scope := range resource.ScopesOf(targets, namespace) {
		if err := v.rebuild(ctx, v.Point, scope, v.keep); err != nil {
			return err
		}
	}
	return nil
}

func (v *View) keep(o history.Object) error {
	if !v.Chosen.Has(o.Stream.GroupResource(), o.Name) {
		return nil
	}
	return v.Objects.AddDoc(o.Stream.GroupResource(), o.Namespace, o.Name, o.RV, o.Doc)
}

// rebuild emits the objects of a scope, and keeps the errors of damaged ones.
func (v *View) rebuild(ctx context.Context, point history.Point, scope history.Scope, emit func(history.Object) error) error {
	progress := v.Env.Progress("rebuilding the cluster at " + point.Instant.String())
	defer progress.End()
	stats, err := v.Rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: v.noteDamage, Progress: progress.Update}, emit)
	if err != nil {
		return err
	}
	v.Env.Notes(stats.Notes)
	return nil
}

func (v *View) noteDamage(d *history.DamagedError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := objectKey{key: d.Name}
	if d.Namespace != "" {
		key.key = d.Namespace + "/" + d.Name
	}
	if d.Stream != nil {
		key.resource = d.Stream.GroupResource()
		if !v.Chosen.Has(key.resource, d.Name) {
			return
		}
	}
	v.damaged[key] = d
}

// Damage returns an error for each damaged object, in the order of the record; nil if there is none.
func (v *View) Damage() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []*history.DamagedError
	for _, d := range v.damaged {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *history.DamagedError) int { return int(a.Seq - b.Seq) })
	var errs []error
	for _, d := range all {
		errs = append(errs, fmt.Errorf("skipped: %w", d))
	}
	return errors.Join(errs...)
}

// DamagedTexts returns the error texts of the damaged objects, sorted.
func (v *View) DamagedTexts() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var texts []string
	for _, d := range v.damaged {
		texts = append(texts, d.Error())
	}
	slices.Sort(texts)
	return texts
}

// Missing returns the error for an object that the View does not hold: it did not exist, or it is damaged.
func (v *View) Missing(r *resource.Resource, key, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d := v.damaged[objectKey{r.GroupResource(), key}]; d != nil {
		return apierrors.NewInternalError(d)
	}
	return apierrors.NewNotFound(r.GroupResource(), name)
}

// Gone adds to the error for a missing object when and by which delta it was deleted, and the command that shows its last
// state. It reports whether the object was deleted.
func (v *View) Gone(ctx context.Context, r *resource.Resource, namespace, name string, missing error) (ended bool, err error) {
	var status *apierrors.StatusError
	if !apierrors.IsNotFound(missing) || !errors.As(missing, &status) {
		return false, missing
	}
	scope := history.Scope{Streams: r.StreamIDs(namespace), Namespace: namespace, Name: name}
	end, err := resource.EndOf(ctx, v.Rec.Record, scope, v.Point)
	if err != nil || end.Seq == 0 {
		return false, errors.Join(err, missing)
	}
	status.ErrStatus.Message += fmt.Sprintf(": deleted at %s, by seq:%d; \"%s\" shows its last state", end.Stamp(), end.Seq, r.Last(v.Env.Command, scope))
	return true, status
}

// Resources of which commands read single objects in addition to the requested ones.
var (
	DefinitionsResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	NamespacesResource  = schema.GroupResource{Resource: "namespaces"}
)

// Definition returns the CustomResourceDefinition of a resource at the instant, nil if there was none.
func (v *View) Definition(ctx context.Context, resource schema.GroupResource) ([]byte, error) {
	return v.Single(ctx, DefinitionsResource, resource.String())
}

// Single returns a cluster-scoped object, also if the user did not request it; nil if there was none.
func (v *View) Single(ctx context.Context, resource schema.GroupResource, name string) ([]byte, error) {
	r := v.Catalog.Find(resource)
	if r == nil {
		return nil, nil
	}
	point := v.Point
	scope := history.Scope{Streams: r.StreamIDs(""), Name: name}
	if point.RV != "" {
		// A resource version has no meaning for another resource, so resolve its time.
		var err error
		if point, err = v.Rec.Resolve(ctx, history.At(point.Time), scope); err != nil {
			return nil, err
		}
	}
	var doc []byte
	_, err := v.Rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: v.noteDamage}, func(o history.Object) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		doc = o.Doc
		return nil
	})
	return doc, err
}
