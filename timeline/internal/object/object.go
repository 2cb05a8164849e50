// Package object shows one object at an instant: its lines, and what its last change changed.
package object

import (
	"context"
	"errors"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/command"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/paths"
)

// A Query selects an object at an instant.
type Query struct {
	Name    find.Name
	At      history.Instant
	Cluster string // for the command; "" if there is only one
}

// An Answer is the object. If it does not exist at the instant, it has no lines, and Previous and Next are its nearest
// versions.
type Answer struct {
	lack.Answer
	Exists   bool           `json:"exists"`
	Object   Versioned      `json:"object"`
	YAML     []Line         `json:"yaml"`
	Delta    *Delta         `json:"delta"`
	Diff     []paths.Change `json:"diff"`
	Previous *int64         `json:"previous"`
	Next     *int64         `json:"next"`
	Command  string         `json:"command"`
}

// Versioned names a version of an object.
type Versioned struct {
	find.Ref
	ResourceVersion string `json:"resourceVersion"`
}

// A Line is one line of YAML.
type Line struct {
	Text   string `json:"text"`
	Path   string `json:"path"`   // JSON pointer of the value that begins on it
	Folded bool   `json:"folded"` // the line is bookkeeping
	Mark   string `json:"mark"`   // added or changed, if this delta did it
}

// A Delta is the last change by the instant.
type Delta struct {
	Seq             int64        `json:"seq"`
	Time            int64        `json:"time"`
	ObservedTime    int64        `json:"observedTime"`
	Type            delta.Type   `json:"type"`
	Source          delta.Source `json:"source"`
	Class           class.Class  `json:"class"`
	Manager         string       `json:"manager"`
	Subresource     string       `json:"subresource"`
	ManagerEvidence string       `json:"managerEvidence"`
	Hint            string       `json:"hint"`
}

// Find returns an object.
func Find(ctx context.Context, rec *history.Record, q Query) (*Answer, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	v, err := find.At(ctx, rec, q.Name, q.At)
	switch {
	case err != nil:
		return nil, err
	case v.Damaged != nil:
		return nil, ask.Gone("the object cannot be shown: %v", v.Damaged)
	}
	a := &Answer{
		Object: Versioned{Ref: find.RefOf(v.Life)}, YAML: []Line{}, Diff: []paths.Change{},
		Command: command.OfLife(q.Cluster, "get", &v.Life).Flag("-o", "yaml").At("--at", v.Point).String(),
	}
	a.Answer = lack.Answer{Seq: state.Extent.LastSeq, Revision: state.Revision, Incomplete: lack.OfNotes(v.Point.Notes)}
	if err := a.around(ctx, rec, v.Life, v.Point, v.Seq); err != nil || v.Seq == 0 {
		return a, err
	}
	return a, a.show(ctx, rec, v.Life, v.Seq)
}

// around finds the nearest versions.
func (a *Answer) around(ctx context.Context, rec *history.Record, life history.Life, point history.Point, last int64) error {
	from := last
	if from == 0 {
		from = point.Seq
	}
	n, err := rec.Lookup().Around(ctx, life.ObjectID, from)
	if err != nil {
		return err
	}
	previous := n.Previous
	if last == 0 {
		previous = n.Last
	}
	a.Previous, a.Next = seqOf(previous), seqOf(n.Next)
	return nil
}

func seqOf(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// show adds the version of a seq. If the row holds the whole object, show works even if the previous version is on a
// missing day. The diff is then unknown.
func (a *Answer) show(ctx context.Context, rec *history.Record, life history.Life, seq int64) error {
	for v, err := range rec.Versions(ctx, history.Query{ObjectIDs: []int64{life.ObjectID}, FromSeq: seq, ToSeq: seq}) {
		var missing *history.MissingDayError
		if errors.As(err, &missing) {
			a.Lost(missing)
			continue
		}
		if err != nil {
			return err
		}
		a.Exists, a.Object.ResourceVersion = true, v.RV
		a.Delta = deltaOf(&v)
		if v.Before != nil {
			a.Diff = paths.Of(field.Changes(v.Before, v.Doc))
		}
		if a.YAML, err = lines(&v); err != nil {
			return err
		}
	}
	return nil
}

func deltaOf(v *history.Version) *Delta {
	return &Delta{
		Seq: v.Seq, Time: v.OccurredAt.UnixMilli(), ObservedTime: v.ObservedAt.UnixMilli(), Type: v.Type, Source: v.Source, Class: class.OfVersion(v),
		Manager: v.Manager, Subresource: v.Subresource, ManagerEvidence: v.Evidence, Hint: v.ManagerHint,
	}
}

// lines returns the lines of a version, as package blame finds them. It marks the lines that the version set.
func lines(v *history.Version) ([]Line, error) {
	var f blame.Fold
	if v.Before != nil {
		before := history.Version{Delta: v.Delta, Doc: v.Before}
		before.Seq, before.Patch = 0, nil
		if err := f.Add(&before); err != nil {
			return nil, err
		}
	}
	if err := f.Add(v); err != nil {
		return nil, err
	}
	all, err := f.Lines(true)
	if err != nil {
		return nil, err
	}
	found := make([]Line, 0, len(all))
	for _, l := range all {
		line := Line{Text: l.Text, Path: l.Pointer, Folded: under(l.Pointer, "/metadata/managedFields")}
		if v.Before != nil && l.Origin != nil && l.Origin.Seq == v.Seq && !line.Folded && !quiet(l.Pointer) {
			line.Mark = "added"
			if _, was := patch.Get(v.Before, l.Pointer); was {
				line.Mark = "changed"
			}
		}
		found = append(found, line)
	}
	return found, nil
}

// quiet reports whether a value changes with every write.
func quiet(pointer string) bool {
	return pointer == "/metadata/resourceVersion" || pointer == "/metadata/generation" || pointer == "/status/observedGeneration"
}

func under(pointer, parent string) bool {
	return pointer == parent || len(pointer) > len(parent) && pointer[:len(parent)+1] == parent+"/"
}
