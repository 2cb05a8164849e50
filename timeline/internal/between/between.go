// Package between compares two instants: how many objects differ, which ones, and in which fields.
//
// It compares as replay diff does (internal/compare). It counts noise, but does not list it. Noise is bookkeeping, Events,
// Leases, Endpoints of Kubernetes' own controllers, and the annotation of an old leader election.
package between

import (
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/compare"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/about"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/command"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
	"github.com/kuberewind/kuberewind/timeline/internal/paths"
)

// MostLimit is the largest number of objects in one answer.
const MostLimit = 2000

// A Query compares B with A. Filter bounds the objects by namespace, resource, name and label. UID requests the changed
// paths of one object.
type Query struct {
	A, B    history.Instant
	Filter  ask.Filter
	UID     string
	Limit   int64
	Cursor  int64
	Cluster string // for the command; "" if there is only one
}

// An Answer lists the differences.
type Answer struct {
	lack.Answer
	A       about.Moment   `json:"a"`
	B       about.Moment   `json:"b"`
	Counts  Counts         `json:"counts"`
	Objects []Object       `json:"objects"`
	Changes []paths.Change `json:"changes,omitempty"` // of the object with the UID
	Damaged string         `json:"damaged,omitempty"` // why some objects could not be compared
	Next    string         `json:"next,omitempty"`
	Command string         `json:"command"` // "" if no command can name these objects
}

// Counts count the objects that differ. Noise counts further objects that differ, but are not listed.
type Counts struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
	Noise   int `json:"noise"`
}

// An Object is an object that differs. Recreated says that an object of its name exists at both instants.
type Object struct {
	find.Ref
	Op        string `json:"op"`
	Paths     int    `json:"paths"`
	Recreated bool   `json:"recreated"`
}

// Compare compares two instants.
func Compare(ctx context.Context, rec *history.Record, q Query) (*Answer, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	scopes, life, err := q.scopes(ctx, rec)
	if err != nil {
		return nil, err
	}
	from, err := rec.Resolve(ctx, q.A, history.Scope{Streams: scopes[0].Streams})
	if err != nil {
		return nil, err
	}
	to, err := rec.Resolve(ctx, q.B, history.Scope{Streams: scopes[0].Streams})
	if err != nil {
		return nil, err
	}
	a := &Answer{A: about.Moment{Seq: from.Seq, Time: from.Time.UnixMilli()}, B: about.Moment{Seq: to.Seq, Time: to.Time.UnixMilli()}, Objects: []Object{}, Command: q.command(life, from, to)}
	a.Answer = lack.Answer{Seq: state.Extent.LastSeq, Revision: state.Revision, Incomplete: append(lack.OfNotes(from.Notes), lack.OfNotes(to.Notes)...)}
	c := compare.New(rec, q.choice(), compare.Hooks{Notes: func([]history.Note) {}, Progress: noProgress})
	for _, scope := range scopes {
		if err := c.Read(ctx, from, to, scope); err != nil {
			return nil, err
		}
	}
	differences, err := c.Result(false)
	if err != nil {
		return nil, err
	}
	if err := c.Damage(); err != nil {
		a.Damaged = err.Error()
	}
	a.Counts.Noise = c.OnlyBookkeeping
	return a, a.fill(&q, differences)
}

func noProgress(string) (report func(history.Progress), end func()) {
	return func(history.Progress) {}, func() {}
}

// scopes returns the scopes to compare, at least one. one is the life, if the query names a single object.
func (q *Query) scopes(ctx context.Context, rec *history.Record) (scopes []history.Scope, one *history.Life, err error) {
	if q.UID != "" {
		life, err := find.Life(ctx, rec, find.Name{UID: q.UID}, 0)
		if err != nil {
			return nil, nil, err
		}
		return []history.Scope{{Streams: []int32{life.Stream.ID}, Namespace: life.Namespace, Name: life.Name}}, &life, nil
	}
	streams, err := rec.Streams(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := marks.CheckResources(streams, q.Filter.Resources); err != nil {
		return nil, nil, err
	}
	of := marks.StreamsOf(streams, q.Filter.Resources)
	for _, namespace := range q.Filter.Namespaces {
		scopes = append(scopes, history.Scope{Streams: of, Namespace: namespace})
	}
	if scopes == nil {
		scopes = []history.Scope{{Streams: of}}
	}
	return scopes, nil, nil
}

func (q *Query) choice() compare.Choice {
	return compare.Choice{
		Has: func(_ schema.GroupResource, name string) bool { return q.Filter.Named(name) },
		Selects: func(doc patch.Doc) bool {
			return q.Filter.Labels == nil || q.Filter.Labels.Matches(labels.Set(selection.StringsAt(doc, "/metadata/labels")))
		},
	}
}

func (a *Answer) fill(q *Query, all []compare.Difference) error {
	if q.UID != "" { // The others are other lives of the same name.
		all = slices.DeleteFunc(all, func(d compare.Difference) bool { return d.Object().UID != q.UID })
	}
	quiet := make([]bool, len(all))
	err := compare.Each(all, func(i int, before, after patch.Doc) error {
		quiet[i] = noise(&all[i], before, after)
		return nil
	})
	if err != nil {
		return err
	}
	place := int64(0)
	for i := range all {
		if quiet[i] {
			a.Counts.Noise++
			continue
		}
		a.count(all[i].Change)
		if place++; place > q.Cursor && place <= q.Cursor+q.Limit {
			if err := a.give(q, &all[i]); err != nil {
				return err
			}
		}
	}
	if place > q.Cursor+q.Limit {
		a.Next = strconv.FormatInt(q.Cursor+q.Limit, 10)
	}
	return nil
}

// give adds a difference to the answer. It finds the changed paths only here: there may be many thousands of other
// differences.
func (a *Answer) give(q *Query, d *compare.Difference) error {
	before, after, err := d.Docs()
	if err != nil {
		return err
	}
	object, changes := d.Object(), field.Visible(field.Changes(before, after))
	a.Objects = append(a.Objects, Object{
		Ref: find.RefOf(history.Life{Stream: object.Stream, Namespace: object.Namespace, Name: object.Name, UID: object.UID}),
		Op:  d.Change, Paths: len(changes), Recreated: d.Recreated,
	})
	if q.UID != "" {
		a.Changes = append(a.Changes, paths.Of(changes)...)
	}
	return nil
}

func (a *Answer) count(of string) {
	switch of {
	case compare.Added:
		a.Counts.Added++
	case compare.Removed:
		a.Counts.Removed++
	default:
		a.Counts.Changed++
	}
}

// noise reports whether a person would not look for this difference.
func noise(d *compare.Difference, before, after patch.Doc) bool {
	object := d.Object()
	changed := change.Delta{Group: object.Stream.Group, Resource: object.Stream.Resource, Type: delta.Updated, Source: delta.SourceWatch, Before: before, Object: after}
	switch {
	case before == nil:
		changed.Type = delta.Added
	case after == nil:
		changed.Type, changed.Object = delta.Deleted, before
	}
	switch change.Of(changed).Class {
	case change.Event, change.Lease, change.Endpoints, change.ManagedFields, change.LeaderElection:
		return true
	default:
		return false
	}
}

func (q *Query) command(life *history.Life, from, to history.Point) string {
	if life != nil {
		return command.OfLife(q.Cluster, "diff", life).At("--from", from).At("--to", to).String()
	}
	line, whole := command.Of(q.Cluster, "diff", &q.Filter)
	if !whole {
		return ""
	}
	return line.At("--from", from).At("--to", to).String()
}
