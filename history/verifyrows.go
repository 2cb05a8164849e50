package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A held is a living object as the deltas so far give it.
type held struct {
	seq    int64
	stream int32
	day    time.Time
	doc    []byte // s2; nil if it cannot be folded
	digest [16]byte
}

type lastOfStream struct {
	seq int64
	rv  string // of its watch
}

func (v *verification) batch(ctx context.Context, batch []row) error {
	lives, err := v.livesOf(ctx, batch)
	if err != nil {
		return err
	}
	for i := range batch {
		w := &batch[i]
		for len(v.checkpoints) > 0 && v.checkpoints[0].Seq < w.seq {
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
		if w.seq == v.extent.LastSeq && len(v.checkpoints) > 0 {
			if err := v.checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	v.counts.Live = int64(len(v.objects))
	if v.options.Progress != nil {
		v.options.Progress(Progress{Stage: "deltas", Done: batch[len(batch)-1].seq - v.extent.FirstSeq + 1, Total: v.extent.LastSeq - v.extent.FirstSeq + 1})
	}
	return nil
}

// order checks what goes up with every row.
func (v *verification) order(w *row) error {
	if w.seq != v.expected {
		text := fmt.Sprintf("seq %d to %d are not on record", v.expected, w.seq-1)
		if w.seq < v.expected {
			text = fmt.Sprintf("seq %d is on record twice", w.seq)
		}
		if err := v.report(Finding{Check: CheckSeq, Seq: w.seq, Text: text}); err != nil {
			return err
		}
	}
	v.expected = w.seq + 1
	if w.observed.Before(v.observed) {
		if err := v.found(CheckSeq, w.seq, "it was observed at %s, before the delta before it", exactly(w.observed)); err != nil {
			return err
		}
	}
	v.observed = w.observed
	if s := v.last[w.stream]; s == nil {
		v.last[w.stream] = &lastOfStream{seq: w.seq}
	} else {
		s.seq = w.seq
	}
	if s := v.last[w.stream]; w.source == delta.NumberWatch && !w.observed.Before(v.generation[w.stream]) {
		s.rv = w.rv
	}
	return nil
}

// row folds a row and checks it in every way.
func (v *verification) row(w *row) error {
	at := w.observed.UTC().Truncate(24 * time.Hour)
	o, before, err := v.before(w)
	if err != nil {
		return err
	}
	if w.whole() {
		v.counts.Keyframes++
	} else if !o.day.Equal(at) && (w.kind != delta.NumberDeleted || w.patch != nil) {
		if err := v.found(CheckKeyframe, w.seq, "it is the first of its object on %s, and no keyframe", at.Format(time.DateOnly)); err != nil {
			return err
		}
	}
	o.seq, o.day, o.stream = w.seq, at, w.stream
	if w.patch != nil {
		v.counts.Patches++
		if err := v.patched(w, before); err != nil {
			return err
		}
	}
	doc, foldErr := fold.Row{RV: w.rv, Patch: w.patch, Object: w.object, Exact: w.exact}.Checked(before, w.digest)
	unknown := errors.Is(foldErr, ErrNoKeyframe) && w.seq != w.objectID // told where it began
	if foldErr != nil {
		o.doc = nil
		if unknown {
			return nil
		}
		return v.found(CheckFold, w.seq, "%s does not fold: %v", v.name(w), foldErr)
	}
	v.packed = s2.Encode(v.packed[:cap(v.packed)], doc)
	o.doc = append(o.doc[:0], v.packed...)
	copy(o.digest[:], w.digest)
	return nil
}

func (v *verification) name(w *row) string {
	name := w.name
	if w.namespace != "" {
		name = w.namespace + "/" + name
	}
	for _, s := range v.streams {
		if s.ID == w.stream {
			return s.GroupResource().String() + " " + name
		}
	}
	return name
}

// before gives what is held of the row's object.
func (v *verification) before(w *row) (*held, patch.Doc, error) {
	o := v.objects[w.objectID]
	if o == nil {
		o = new(held)
		v.objects[w.objectID] = o
		switch {
		case w.seq == w.objectID:
			v.born++
		case w.objectID >= v.extent.FirstSeq:
			if err := v.found(CheckLives, w.seq, "it belongs to object %d, which has ended, or has no first delta", w.objectID); err != nil {
				return nil, nil, err
			}
		}
		return o, nil, nil
	}
	if w.seq == w.objectID {
		if err := v.found(CheckLives, w.seq, "it begins an object that is there already"); err != nil {
			return nil, nil, err
		}
	}
	if o.doc == nil {
		return o, nil, nil
	}
	doc, err := s2.Decode(nil, o.doc)
	return o, doc, err
}

// patched checks a patch against the version before it.
func (v *verification) patched(w *row, before patch.Doc) error {
	if before == nil || w.exact != nil {
		return nil
	}
	base := fold.Rebased(before, w.rv)
	if _, changed := patch.SafeForSQL(base); changed {
		return nil // the patch says in part what SQL can hold, for readers; the keyframe beside it counts
	}
	tested, err := withTests(w.patch)
	if err != nil {
		return v.found(CheckOld, w.seq, "%s: its patch: %v", v.name(w), err)
	}
	doc, err := patch.Apply(base, tested)
	if err != nil {
		if _, plainErr := patch.Apply(base, w.patch); plainErr == nil {
			return v.found(CheckOld, w.seq, "%s: what its patch calls old is not what was there: %v", v.name(w), err)
		}
		return v.found(CheckFold, w.seq, "%s: its patch does not apply: %v", v.name(w), err)
	}
	if w.whole() {
		whole, err := w.keyframe()
		if err == nil && string(whole) != string(doc) {
			return v.found(CheckKeyframe, w.seq, "%s: its patch gives another object than the keyframe beside it", v.name(w))
		}
	}
	return nil
}
