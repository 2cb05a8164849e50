package postgres

import "github.com/kuberewind/kuberewind/delta"

// A streamState is what a row of streams says that changes with the deltas. Empty texts of its position are NULL.
type streamState struct {
	at           delta.Position
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

// pass moves the position by an event of the watch. Of an event that is not recorded, the type is not known: it may be a delete. What
// is given twice after a crash is skipped.
func (e *encoder) pass(b *Batch, st *Stream, it *Item) {
	w := &st.work
	if !w.synced {
		// I1: while nothing is complete, nothing can be resumed. The list has to come first.
		if w.at.See(it.Position) {
			b.touch(st)
		}
		return
	}
	before := w.at.Complete
	if w.at.Advance(it.Position, it.Kind != Delta || it.Type == delta.Deleted) {
		e.moved(b, st, before)
	}
}

// bookmark moves the position to where the server says that everything has been given.
func (e *encoder) bookmark(b *Batch, st *Stream, rv string) {
	w := &st.work
	before := w.at.Complete
	if w.synced && w.at.Bookmark(rv) {
		w.bookmarks = true
		e.moved(b, st, before)
	}
}

// moved notes that the stream has gone on from a position.
func (e *encoder) moved(b *Batch, st *Stream, from string) {
	e.resumedByItself(b, st, from)
	st.work.positionedAt = e.head.observed
	b.touch(st)
}

// begun notes that a list has changed what is recorded, other than by what one resource version now looks like. I3: until the
// list ends, the stream cannot be resumed from its position. A watch from there gives versions from before the list. They
// would come too late for the objects that the list has shown.
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
