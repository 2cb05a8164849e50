// Package blamed returns the lines of an object at an instant, each with the version that last set it (package blame).
package blamed

import (
	"context"
	"errors"
	"strings"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/command"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// An Answer lists the lines.
type Answer struct {
	lack.Answer
	Object  find.Ref `json:"object"`
	Lines   []Line   `json:"lines"`
	Origins []Origin `json:"origins"`
	Command string   `json:"command"`
}

// A Line is one line of YAML. Origin is an index into Origins, or -1.
type Line struct {
	Text   string `json:"text"`
	Path   string `json:"path"`
	Folded bool   `json:"folded"`
	Origin int    `json:"origin"`
}

// An Origin is a version that set lines.
type Origin struct {
	Seq         int64  `json:"seq"`
	Time        int64  `json:"time"`
	Type        string `json:"type"`
	Manager     string `json:"manager"`
	Subresource string `json:"subresource"`
	Earlier     bool   `json:"earlier"` // this version or an earlier one set the line
	Latest      bool   `json:"latest"`  // this version, or a version that the record missed, set the line
}

// Find returns the lines of the version that the object has at the instant. In a pause, the estimated time decides: replay
// blame also takes versions that may have happened by then.
func Find(ctx context.Context, rec *history.Record, name find.Name, at history.Instant, cluster string) (*Answer, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	v, err := find.At(ctx, rec, name, at)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		Object: find.RefOf(v.Life), Lines: []Line{}, Origins: []Origin{},
		Command: command.OfLife(cluster, "blame", &v.Life).At("--at", v.Point).String(),
	}
	a.Answer = lack.Answer{Seq: state.Extent.LastSeq, Revision: state.Revision, Incomplete: lack.OfNotes(v.Point.Notes)}
	switch {
	case v.Seq == 0:
		return nil, ask.NotFound("%s does not exist at this instant: choose another one", a.Object.Name)
	case v.Damaged != nil:
		a.Incomplete = append(a.Incomplete, lack.DamagedAt(v.Point.Time, v.Damaged)) // The lines come from the last undamaged version.
	}
	fold, err := a.read(ctx, rec, v.Life.ObjectID, v.Seq)
	if err != nil {
		return nil, err
	}
	return a, a.fill(fold)
}

// read folds the versions of a life up to a seq.
func (a *Answer) read(ctx context.Context, rec *history.Record, id, seq int64) (*blame.Fold, error) {
	var fold blame.Fold
	for v, err := range rec.Versions(ctx, history.Query{ObjectIDs: []int64{id}, ToSeq: seq}) {
		var damaged *history.DamagedError
		var missing *history.MissingDayError
		switch {
		case errors.As(err, &missing):
			a.Lost(missing)
			continue
		case errors.As(err, &damaged):
			if v.Seq != seq {
				a.Incomplete = append(a.Incomplete, lack.DamagedAt(v.OccurredAt, damaged))
			}
			continue
		case err != nil:
			return nil, err
		}
		if err := fold.Add(&v); err != nil {
			return nil, err
		}
	}
	return &fold, nil
}

func (a *Answer) fill(fold *blame.Fold) error {
	lines, err := fold.Lines(true)
	if errors.Is(err, blame.ErrNothing) {
		return ask.Gone("no version of %s by this instant can be read: choose another one", a.Object.Name)
	}
	if err != nil {
		return err
	}
	places := map[*blame.Origin]int{}
	for _, l := range lines {
		line := Line{Text: l.Text, Path: l.Pointer, Origin: -1, Folded: strings.HasPrefix(l.Pointer+"/", "/metadata/managedFields/")}
		if o := l.Origin; o != nil {
			place, known := places[o]
			if !known {
				place = len(a.Origins)
				places[o] = place
				a.Origins = append(a.Origins, Origin{
					Seq: o.Seq, Time: o.OccurredAt.UnixMilli(), Type: string(o.Type), Manager: o.Manager, Subresource: o.Subresource, Earlier: o.Earlier, Latest: o.Latest,
				})
			}
			line.Origin = place
		}
		a.Lines = append(a.Lines, line)
	}
	return nil
}
