package postgres

import (
	"cmp"
	"strings"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/chain"
)

// A stream has at most one open gap. One unseen period is one row, even if its reason changes meanwhile. The row keeps
// the first cause, because without it nothing would have been missed. Streams.detail shows the present cause. Only a
// rollback of the server's history has a row of its own, because it separates two generations of resource versions.

func (e *encoder) interrupted(b *Batch, st *Stream, it *Item) {
	w, m := &st.work, &it.Marker
	if w.gap != nil && m.Cause.Divides(w.gap.Cause) {
		// After a rollback, resource versions have another meaning. The gap that follows says where the rollback
		// begins.
		e.closeGap(b, st, delta.OutcomeRelisted, w.at.Complete)
	}
	switch detail := clean(m.Detail); {
	case w.gap == nil:
		e.openGap(b, st, m)
	case m.Cause == delta.CauseUndecodable && !strings.Contains(w.gap.Detail, detail):
		w.gap.Detail = joined(w.gap.Detail, detail) // Only the gap names an object that cannot be read.
		b.change(w.gap)
	}
	e.setState(b, st, delta.StateInterrupted, note(m))
}

func (e *encoder) resumed(b *Batch, st *Stream, it *Item) {
	w := &st.work
	if w.gap != nil && !it.Marker.Cause.Ends(w.gap.Cause) {
		return
	}
	if w.gap != nil {
		e.closeGap(b, st, delta.OutcomeResumed, cmp.Or(it.Marker.ToRV, w.at.Complete))
	}
	state := delta.StateLive
	if !w.synced {
		state = delta.StateListing
	}
	e.setState(b, st, state, "")
}

// resumedByItself closes a gap that an earlier recorder did not close, if the watch continues from the stored position.
// This recorder's reflector was never interrupted, so it sends no Resumed.
func (e *encoder) resumedByItself(b *Batch, st *Stream, at string) {
	if st.work.gap == nil || !st.work.inherited || st.work.gap.Cause == delta.CauseHistoryReversed {
		return
	}
	e.closeGap(b, st, delta.OutcomeResumed, at)
	e.setState(b, st, delta.StateLive, "")
}

// replaced records that a list has made the stream complete. I3: this is a gap, even if none was open, because no
// stream saw the versions in between.
func (e *encoder) replaced(b *Batch, st *Stream, it *Item) {
	w, m := &st.work, &it.Marker
	if w.gap == nil {
		e.openGap(b, st, m)
	}
	counts := [4]int64{int64(m.Appeared), int64(m.Changed), int64(m.Vanished), int64(m.Unchanged)}
	if before := w.gap.Counts; before != nil { // An earlier list has not ended the gap.
		for i := range 3 {
			counts[i] += before[i]
		}
	}
	outcome := delta.OutcomeRelisted
	if w.synced && [3]int64(counts[:3]) == [3]int64{} {
		outcome = delta.OutcomeEqual
	}
	w.gap.Detail, w.gap.Counts = joined(w.gap.Detail, clean(m.Detail)), &counts
	rv := cmp.Or(m.ToRV, it.Position)
	state, detail := delta.StateLive, ""
	if m.Cause.Ends(w.gap.Cause) {
		e.closeGap(b, st, outcome, rv)
	} else {
		state, detail = delta.StateInterrupted, string(w.gap.Cause)
	}
	w.synced, w.filter = true, m.Rules
	w.at, w.positionedAt = delta.At(rv), e.head.observed
	e.setState(b, st, state, detail)
}

func (e *encoder) openGap(b *Batch, st *Stream, m *delta.Marker) {
	e.lastGap++
	g := &gap{Gap: chain.Gap{Number: e.lastGap, Stream: st.id, Cause: delta.Cause(clean(string(m.Cause))), Detail: clean(m.Detail)}, opened: b.after.batch}
	w := &st.work
	from, at := cmp.Or(m.FromRV, w.at.Complete), w.positionedAt
	switch {
	case !w.at.Reaches(from):
		from = w.at.Complete
	case !m.FromTime.IsZero():
		at = m.FromTime.UnixMicro()
	}
	if from != "" && m.Cause != delta.CauseFirstList {
		from = clean(from)
		g.FromRV, g.FromAt = &from, &at
	}
	st.work.gap, st.work.inherited = g, false
	b.change(g)
}

func (e *encoder) closeGap(b *Batch, st *Stream, outcome delta.Outcome, toRV string) {
	g, at := st.work.gap, e.head.observed
	g.Outcome, g.closed, g.ToAt = outcome, b.after.batch, &at
	if toRV != "" {
		toRV = clean(toRV)
		g.ToRV = &toRV
	}
	st.work.gap = nil
	b.change(g)
	b.touch(st)
}

// change adds the gap's row to the batch.
func (b *Batch) change(g *gap) {
	for _, touched := range b.touched {
		if touched == g {
			return
		}
	}
	b.touched = append(b.touched, g)
	b.changed = true
}

func note(m *delta.Marker) string {
	if m.Detail == "" {
		return string(m.Cause)
	}
	return string(m.Cause) + ": " + m.Detail
}

// joined appends another detail to a detail. The second may repeat the first.
func joined(detail, more string) string {
	switch {
	case strings.HasPrefix(more, detail):
		return more
	case more == "":
		return detail
	}
	return detail + "; " + more
}
