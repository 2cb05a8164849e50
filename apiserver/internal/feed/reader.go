package feed

import (
	"context"
	"slices"

	"github.com/kuberewind/kuberewind/history"
)

// A Reader is the place of one watch in a Feed.
type Reader struct {
	feed  *Feed
	scope history.Scope
	seq   int64 // all deltas up to this seq were delivered
	batch int64 // the ends of gaps up to this commit were delivered

	joined bool
	next   int64 // number of the next event, once joined
	jumps  int
	backs  int
	open   bool
}

// Reader makes a Reader of the deltas of a scope after the Feed's seq. It delivers each end of a gap that the Feed passes
// from now on. Close releases it.
func (f *Feed) Reader(ctx context.Context, scope history.Scope) (*Reader, error) {
	for {
		if _, _, err := f.place(ctx); err != nil {
			return nil, err
		}
		if r := f.reader(scope); r != nil {
			return r, nil
		}
	}
}

// reader makes a Reader if the commit of the Feed's seq is known, else it returns nil.
func (f *Feed) reader(scope history.Scope) *Reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.batch < 0 {
		return nil
	}
	f.readers++
	return &Reader{feed: f, scope: scope, seq: f.seq, batch: f.batch, jumps: f.jumps, backs: f.backs, open: true}
}

// Begin makes the Reader start after another seq, which must not be above the Feed's. Call it before the first Read.
func (r *Reader) Begin(after int64) { r.seq = after }

// Close removes the Reader from the Feed.
func (r *Reader) Close() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if r.open {
		r.open = false
		r.feed.readers--
	}
}

// Seq returns the seq up to which all deltas were delivered.
func (r *Reader) Seq() int64 { return r.seq }

// Joined reports whether the Reader has caught up. From then on it must keep up.
func (r *Reader) Joined() bool { return r.joined }

// Read passes some of the available events to take, and returns the error of take. more reports whether more events may be
// available. Its own errors are ErrClosed, ErrBackward and ErrBehind.
func (r *Reader) Read(ctx context.Context, take func(*Event) error) (more bool, err error) {
	events, to, more, err := r.look()
	if err != nil {
		return false, err
	}
	if !r.joined {
		return true, r.catchUp(ctx, to, take)
	}
	for _, e := range events {
		if err := take(e); err != nil {
			return false, err
		}
	}
	return more, nil
}

// burstShare bounds the events that a Reader holds at a time: one 64th of the kept bytes.
const burstShare = 64

// A target is the place up to which a Reader must read the record.
type target struct{ seq, batch int64 } // batch is -1 if it is unknown

// look returns the next kept events. For a Reader that has not joined, it returns the target up to which the Reader must
// read the record.
func (r *Reader) look() (events []*Event, to target, more bool, err error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := r.ended(); err != nil {
		return nil, to, false, err
	}
	if r.jumps != f.jumps {
		r.joined, r.jumps = false, f.jumps
	}
	if !r.joined && (r.seq < f.backlog.after || r.batch < f.backlog.ends || f.batch < 0) {
		return nil, target{f.seq, f.batch}, true, nil
	}
	if !r.joined {
		r.joined, r.next = true, f.backlog.since(r.seq, r.batch)
	}
	if r.next < f.backlog.first {
		return nil, to, false, ErrBehind
	}
	events = r.burst()
	if more = r.next < f.backlog.next(); !more {
		r.seq, r.batch = f.seq, f.batch
	}
	return events, to, more, nil
}

// ended returns why the Reader has ended. The Feed's mu is held.
func (r *Reader) ended() error {
	switch {
	case r.feed.closed:
		return ErrClosed
	case r.backs != r.feed.backs:
		return ErrBackward
	}
	return nil
}

// burst returns the next events of the scope, up to its share of bytes. The Feed's mu is held.
func (r *Reader) burst() (events []*Event) {
	kept := &r.feed.backlog
	size := int64(0)
	for size < kept.most/burstShare && r.next < kept.next() {
		e := kept.numbered(r.next)
		r.next++
		r.seq, r.batch = e.place(r.batch)
		if r.wants(e) {
			events, size = append(events, e), size+e.size
		}
	}
	return events
}

func (r *Reader) wants(e *Event) bool {
	if e.Relist != nil {
		return r.scope.Streams == nil || slices.Contains(r.scope.Streams, e.Relist.Stream)
	}
	return (r.scope.Streams == nil || slices.Contains(r.scope.Streams, e.Stream.ID)) && (r.scope.Namespace == "" || r.scope.Namespace == e.Namespace)
}

// catchUp reads the record up to a target.
func (r *Reader) catchUp(ctx context.Context, to target, take func(*Event) error) error {
	record := r.feed.record
	batch, err := to.batch, error(nil)
	if batch < 0 {
		batch, err = record.Commits.BatchAt(ctx, to.seq)
	}
	if err != nil {
		return err
	}
	relists, err := record.Commits.Relists(ctx, r.batch, batch)
	if err != nil {
		return err
	}
	for e, err := range between(ctx, record.Deltas, history.Query{Scope: r.scope, FromSeq: r.seq + 1, ToSeq: to.seq}, relists) {
		if err == nil {
			err = r.stillOpen()
		}
		if err == nil && r.wants(e) {
			err = take(e)
		}
		if err != nil {
			return err
		}
	}
	r.seq, r.batch = to.seq, max(r.batch, batch)
	r.feed.know(to.seq, batch)
	return nil
}

func (r *Reader) stillOpen() error {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	return r.ended()
}

// know notes the commit of the Feed's seq, unless the Feed has moved.
func (f *Feed) know(seq, batch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seq == seq && f.batch < 0 {
		f.batch = batch
	}
}
