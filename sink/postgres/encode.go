package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/chain"
)

// An encoder moves positions, states and gaps, and records versions. It belongs to the goroutine that calls Encode,
// which waits for the goroutines that it starts.
type encoder struct {
	cluster int32
	head    head // after the previous batch; its time is the time of the last item
	lastGap int64
	chain   *chain.Digester
	now     func() time.Time
	hooks   Hooks
	err     error // the encoder cannot be used after it
	drafts  drafts
}

// Encode makes a batch of items. It skips versions that are already recorded, gives seqs, computes and checks patches,
// and moves the known state. It works on as many goroutines as there are processors. It may run while the previous
// batch is being committed.
//
// After an error the sink cannot be used, because the seqs that were given will not be committed. For the same reason
// the caller must commit every batch.
func (s *Sink) Encode(items []Item) (*Batch, error) {
	e := &s.encoder
	if e.err != nil {
		return nil, e.err
	}
	b := s.spare.take()
	e.begin(b)
	for i := range items {
		if err := e.item(b, s.streams.numbered(items[i].Stream), &items[i]); err != nil {
			e.err = fmt.Errorf("encode item %d of %d, of stream %d: %w", i+1, len(items), items[i].Stream, err)
			return nil, e.err
		}
	}
	e.drafts.finish(b)
	s.sweeps.complete(b, e.head.observed, &s.streams)
	e.end(b)
	b.stats.Items = len(items)
	if e.hooks.Encoded != nil {
		e.hooks.Encoded(b.stats)
	}
	return b, nil
}

func (e *encoder) begin(b *Batch) {
	b.before, b.after = e.head, e.head
	b.after.batch++
	b.copies.deltas.begin()
	e.chain.Begin(e.head.digest)
}

func (e *encoder) item(b *Batch, st *Stream, it *Item) error {
	if st == nil {
		return errors.New("the stream is not open")
	}
	e.observe(b, it)
	switch it.Kind {
	case Delta:
		return e.delta(b, st, it)
	case Position:
		e.position(b, st, it)
	case Marked:
		return e.mark(b, st, it)
	case Excluded, Unexcluded:
		e.exclude(b, st, it)
	default:
		return fmt.Errorf("unknown kind %d of item", it.Kind)
	}
	return nil
}

func (e *encoder) mark(b *Batch, st *Stream, it *Item) error {
	switch it.Marker.Kind {
	case delta.Interrupted:
		e.interrupted(b, st, it)
	case delta.Resumed:
		e.resumed(b, st, it)
	case delta.Replaced:
		e.replaced(b, st, it)
	case delta.Compared:
		st.work.schema = clean(it.Marker.Detail)
		b.touch(st)
	default:
		return fmt.Errorf("unknown kind %q of marker", it.Marker.Kind)
	}
	return nil
}

// observe moves the encoder's time. The time does not decrease with seq.
func (e *encoder) observe(b *Batch, it *Item) {
	observed := it.Observed
	if observed.IsZero() {
		observed = e.now()
	}
	e.head.observed = max(e.head.observed, observed.UnixMicro())
	b.after.observed = e.head.observed
}

// touch adds the stream's row to the batch.
func (b *Batch) touch(st *Stream) {
	if !st.dirty {
		st.dirty = true
		b.dirty = append(b.dirty, st)
	}
	b.changed = true
}

func (e *encoder) exclude(b *Batch, st *Stream, it *Item) {
	namespace, name := splitKey(it.Key)
	uid := it.UID
	if it.Object != nil {
		namespace, name, uid = it.Object.GetNamespace(), it.Object.GetName(), it.Object.GetUID()
	}
	if st.setExcluded(uid, it.Kind == Excluded) {
		if b.excluded == nil {
			b.excluded = make(map[excludedKey]excludedRow)
		}
		b.excluded[excludedKey{st.id, uid}] = excludedRow{
			present: it.Kind == Excluded, namespace: clean(namespace), name: clean(name), at: e.head.observed,
		}
		b.changed = true
	}
	e.advance(b, st, it)
}

// bound extends the bounds of the row's day.
func (b *Batch) bound(r *row, lastDay *int32) {
	day := dayOf(r.Observed)
	if n := len(b.days); n == 0 || b.days[n-1].day != day {
		b.days = append(b.days, dayRow{day: day, created: day > *lastDay, firstSeq: r.Seq, firstAt: r.Observed})
		*lastDay = max(day, *lastDay)
	}
	d := &b.days[len(b.days)-1]
	d.lastSeq, d.lastAt = r.Seq, r.Observed
}

// end completes the batch and its digest, and moves the head.
func (e *encoder) end(b *Batch) {
	b.copies.deltas.end()
	e.copyLives(b)
	e.endGaps(b)
	for _, st := range b.dirty {
		st.dirty = false
		b.streams = append(b.streams, streamRow{id: st.id, state: st.publish()})
	}
	if !b.changed {
		return
	}
	b.after.digest = e.chain.Sum(chain.Batch{
		Cluster: e.cluster, Epoch: b.after.epoch, Number: b.after.batch, FirstSeq: b.firstSeq(), LastSeq: b.after.seq, Observed: b.after.observed,
	})
	e.head = b.after
}

// copyLives copies the lives that begin and those that end, and adds them to the digest.
func (e *encoder) copyLives(b *Batch) {
	b.copies.lives.begin()
	b.copies.living.begin()
	for i := range b.lives {
		l := &b.lives[i]
		e.chain.Life(&l.Life)
		l.copyTo(&b.copies.lives, e.cluster)
		if !l.ended {
			l.copyLivingTo(&b.copies.living, e.cluster)
		}
	}
	b.copies.lives.end()
	b.copies.living.end()
	b.copies.ends.begin()
	for i := range b.endings {
		e.chain.End(&b.endings[i].End)
		b.endings[i].copyTo(&b.copies.ends, e.cluster)
	}
	b.copies.ends.end()
}

// endGaps copies the gaps in their present state, because the next batch may change them while this one is being
// committed.
func (e *encoder) endGaps(b *Batch) {
	for _, g := range b.touched {
		b.gaps = append(b.gaps, gapChange{gap: *g, created: g.opened == b.after.batch})
	}
	slices.SortFunc(b.gaps, func(x, y gapChange) int { return cmp.Compare(x.Number, y.Number) })
	for i := range b.gaps {
		if b.gaps[i].created {
			e.chain.Opened(&b.gaps[i].Gap)
		}
	}
	for i := range b.gaps {
		if b.gaps[i].closed == b.after.batch {
			e.chain.Closed(&b.gaps[i].Gap)
		}
	}
}
