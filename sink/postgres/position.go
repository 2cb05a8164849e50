package postgres

import "github.com/kuberewind/kuberewind/delta"

// A streamState holds the columns of a row of streams that change with the deltas. Empty texts of its position are
// NULL.
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
	gap          *gap   // the open gap, nil if there is none
	inherited    bool   // an earlier recorder opened the gap
}

func (e *encoder) position(b *Batch, st *Stream, it *Item) {
	if it.Source == delta.SourceWatch {
		e.advance(b, st, it)
		return
	}
	e.bookmark(b, st, it.Position)
}

// advance moves the position by an event of the watch. If the event is not recorded, its type is unknown, and it may be a
// delete. After a crash the server may repeat events; the sink skips them.
func (e *encoder) advance(b *Batch, st *Stream, it *Item) {
	w := &st.work
	if !w.synced {
		// I1: while the stream is not complete, it cannot be resumed. A list must come first.
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

// bookmark moves the position to the resource version up to which the server has sent everything.
func (e *encoder) bookmark(b *Batch, st *Stream, rv string) {
	w := &st.work
	before := w.at.Complete
	if w.synced && w.at.Bookmark(rv) {
		w.bookmarks = true
		e.moved(b, st, before)
	}
}

// moved records that the stream has continued from a position.
func (e *encoder) moved(b *Batch, st *Stream, from string) {
	e.resumedByItself(b, st, from)
	st.work.positionedAt = e.head.observed
	b.touch(st)
}

// begun records that a list, and not a comparison of the schema, has changed the record. I3: until the list ends, the
// stream cannot be resumed from its position. A watch from there sends versions from before the list. They would come
// too late for the objects that the list has shown.
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
