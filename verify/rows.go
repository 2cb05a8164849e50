package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

func (v *recordWalk) batch(ctx context.Context, batch []history.Row) error {
	lives, err := v.livesOf(ctx, batch)
	if err != nil {
		return err
	}
	for i := range batch {
		w := &batch[i]
		for len(v.checkpoints) > 0 && v.checkpoints[0].Seq < w.Seq {
			if err := v.checkpoint(ctx); err != nil {
				return err
			}
		}
		if err := v.order(w); err != nil {
			return err
		}
		if err := v.row(w); err != nil {
			return err
		}
		if err := v.life(w, lives); err != nil {
			return err
		}
		v.counts.Deltas++
		if w.Seq == v.survey.LastSeq && len(v.checkpoints) > 0 {
			if err := v.checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	v.counts.Live = int64(len(v.objects))
	if v.options.Progress != nil {
		v.options.Progress(history.Progress{Stage: "deltas", Done: batch[len(batch)-1].Seq - v.survey.FirstSeq + 1, Total: v.survey.LastSeq - v.survey.FirstSeq + 1})
	}
	return nil
}

// order checks values that must not decrease from row to row.
func (v *recordWalk) order(w *history.Row) error {
	if w.Seq != v.expected {
		text := fmt.Sprintf("seq %d to %d are not on record", v.expected, w.Seq-1)
		if w.Seq < v.expected {
			text = fmt.Sprintf("seq %d is on record twice", w.Seq)
		}
		if err := v.report(Finding{Check: CheckSeq, Seq: w.Seq, Text: text}); err != nil {
			return err
		}
	}
	v.expected = w.Seq + 1
	if w.ObservedAt.Before(v.observed) {
		if err := v.found(CheckSeq, w.Seq, "it was observed at %s, earlier than the previous delta", exactly(w.ObservedAt)); err != nil {
			return err
		}
	}
	v.observed = w.ObservedAt
	if s := v.last[w.Stream]; s == nil {
		v.last[w.Stream] = &lastOfStream{seq: w.Seq}
	} else {
		s.seq = w.Seq
	}
	if s := v.last[w.Stream]; w.Source == delta.NumberWatch && !w.ObservedAt.Before(v.generation[w.Stream]) {
		s.rv = w.RV
	}
	return nil
}

// row folds a row and makes all checks on it.
func (v *recordWalk) row(w *history.Row) error {
	at := w.ObservedAt.UTC().Truncate(24 * time.Hour)
	o, before, err := v.before(w)
	if err != nil {
		return err
	}
	if w.Whole() {
		v.counts.Keyframes++
	} else if !o.day.Equal(at) && (w.Type != delta.NumberDeleted || w.Patch != nil) {
		if err := v.found(CheckKeyframe, w.Seq, "it is the first of its object on %s, but not a keyframe", at.Format(time.DateOnly)); err != nil {
			return err
		}
	}
	o.seq, o.day, o.stream = w.Seq, at, w.Stream
	if w.Patch != nil {
		v.counts.Patches++
		if err := v.patched(w, before); err != nil {
			return err
		}
	}
	doc, foldErr := fold.Row{RV: w.RV, Patch: w.Patch, Object: w.Object, Exact: w.Exact}.Checked(before, w.Digest)
	unknown := errors.Is(foldErr, fold.ErrNoKeyframe) && w.Seq != w.ObjectID // reported at the damaged row
	if foldErr != nil {
		o.doc = nil
		if unknown {
			return nil
		}
		return v.found(CheckFold, w.Seq, "%s does not fold: %v", v.name(w), foldErr)
	}
	v.packed = s2.Encode(v.packed[:cap(v.packed)], doc)
	o.doc = append(o.doc[:0], v.packed...)
	copy(o.digest[:], w.Digest)
	return nil
}

func (v *recordWalk) name(w *history.Row) string {
	name := w.Life.Name
	if w.Life.Namespace != "" {
		name = w.Life.Namespace + "/" + name
	}
	for i := range v.survey.Streams {
		if s := &v.survey.Streams[i]; s.ID == w.Stream {
			return s.GroupResource().String() + " " + name
		}
	}
	return name
}

// before returns the held object of a row, and its document.
func (v *recordWalk) before(w *history.Row) (*held, patch.Doc, error) {
	o := v.objects[w.ObjectID]
	if o == nil {
		o = new(held)
		v.objects[w.ObjectID] = o
		switch {
		case w.Seq == w.ObjectID:
			v.born++
		case w.ObjectID >= v.survey.FirstSeq:
			if err := v.found(CheckLives, w.Seq, "it belongs to object %d, which has ended, or has no first delta", w.ObjectID); err != nil {
				return nil, nil, err
			}
		}
		return o, nil, nil
	}
	if w.Seq == w.ObjectID {
		if err := v.found(CheckLives, w.Seq, "it begins an object that exists already"); err != nil {
			return nil, nil, err
		}
	}
	if o.doc == nil {
		return o, nil, nil
	}
	doc, err := s2.Decode(nil, o.doc)
	return o, doc, err
}

// patched checks a patch against the previous version.
func (v *recordWalk) patched(w *history.Row, before patch.Doc) error {
	if before == nil || w.Exact != nil {
		return nil
	}
	base := fold.Rebased(before, w.RV)
	if _, changed := patch.SafeForSQL(base); changed {
		return nil // this patch contains only what SQL can hold, for readers; its keyframe counts
	}
	tested, err := withTests(w.Patch)
	if err != nil {
		return v.found(CheckOld, w.Seq, "%s: its patch: %v", v.name(w), err)
	}
	doc, err := patch.Apply(base, tested)
	if err != nil {
		if _, plainErr := patch.Apply(base, w.Patch); plainErr == nil {
			return v.found(CheckOld, w.Seq, "%s: the old values in its patch differ from the previous version: %v", v.name(w), err)
		}
		return v.found(CheckFold, w.Seq, "%s: its patch does not apply: %v", v.name(w), err)
	}
	if w.Whole() {
		whole, err := w.Keyframe()
		if err == nil && string(whole) != string(doc) {
			return v.found(CheckKeyframe, w.Seq, "%s: its patch gives another object than its keyframe", v.name(w))
		}
	}
	return nil
}
