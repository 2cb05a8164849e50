package postgres

import "github.com/kuberewind/kuberewind/delta"

// A streamState is what a row of streams says that changes with the deltas. Empty texts of position and lastRV are NULL.
type streamState struct {
	position     string
	lastRV       string
	shared       bool // more may have lastRV than was given: it was of a deletion, or nobody knows of what
	lastSeq      int64
	synced       bool
	bookmarks    bool
	positionedAt int64
	state        delta.State
	stateSince   int64
	detail       string
	filter       string
	schema       string // see Stream.Schema
	gap          *gap   // the open one
	inherited    bool   // the gap was opened by a recorder before this one
}

func (e *encoder) position(b *Batch, st *Stream, it *Item) {
	if it.Source == delta.SourceWatch {
		e.pass(b, st, it)
		return
	}
	e.bookmark(b, st, it.Position)
}

// pass moves the position by an event of the watch. Several deletes can share one resource version (Events that expire on one
// etcd lease), and a crash can come between them: so the position stays at the resource version before the last one, until
// a bookmark says that all of the last one has been given. What is given twice by that is skipped.
func (e *encoder) pass(b *Batch, st *Stream, it *Item) {
	w, rv := &st.work, it.Position
	if rv == "" || !delta.Passes(rv, w.lastRV) {
		return
	}
	// I1: while nothing is complete, nothing can be resumed: the list has to come first.
	if w.synced {
		w.position, w.positionedAt = w.lastRV, e.head.observed
		e.resumedByItself(b, st)
	}
	w.lastRV, w.shared = rv, it.Kind != Delta || it.Type == delta.Deleted
	b.touch(st)
}

// bookmark moves the position to where the server says that everything has been given.
func (e *encoder) bookmark(b *Batch, st *Stream, rv string) {
	w := &st.work
	if rv == "" || !w.synced || delta.Precedes(rv, w.lastRV) {
		return
	}
	e.resumedByItself(b, st)
	w.bookmarks = true
	w.position, w.lastRV, w.shared, w.positionedAt = rv, rv, false, e.head.observed
	b.touch(st)
}

// begun notes that a list has changed what is recorded, other than by what one resource version now looks like. I3: until its end the stream cannot be resumed from its position, since a
// watch from there gives versions from before the list, which would come too late for the objects that the list has shown.
func (e *encoder) begun(b *Batch, st *Stream, source delta.Source) {
	if st.work.synced && source.Listed() {
		st.work.synced = false
		b.touch(st)
	}
}

func (e *encoder) setState(b *Batch, st *Stream, state delta.State, detail string) {
	w := &st.work
	if w.state != state {
		w.stateSince = e.head.observed
	}
	w.state, w.detail = state, clean(detail)
	b.touch(st)
}
