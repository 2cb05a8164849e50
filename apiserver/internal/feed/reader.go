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
	seq   int64 // up to which all was given
	batch int64 // the last commit of which the ends of gaps were given

	joined bool
	next   int64 // number of the next event, once it has joined
	jumps  int
	backs  int
	open   bool
}

// Reader makes a Reader of the deltas of a scope after where the Feed is. Each end of a gap that the Feed passes from now on is
// given to it. Close frees it.
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

// reader makes a Reader, if the commit of the Feed's seq is known.
func (f *Feed) reader(scope history.Scope) *Reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.batch < 0 {
		return nil
	}
	f.readers++
	return &Reader{feed: f, scope: scope, seq: f.seq, batch: f.batch, jumps: f.jumps, backs: f.backs, open: true}
}

// Begin has the Reader give the deltas after another seq, which must not be above the Feed's. It comes before the first Read.
func (r *Reader) Begin(after int64) { r.seq = after }

// Close lets the Feed forget the Reader.
func (r *Reader) Close() {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if r.open {
		r.open = false
		r.feed.readers--
	}
}

// Seq is up to which all was given.
func (r *Reader) Seq() int64 { return r.seq }

// Joined reports whether the Reader has caught up: from then on it has to keep up.
func (r *Reader) Joined() bool { return r.joined }

// Read gives some of what there is now, by calls of take, whose error it returns. more says that there may be more already. Its own errors are
// ErrClosed, ErrBackward and ErrBehind.
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

// burstShare is how much of what is kept a Reader holds at a time: one part of 64.
const burstShare = 64

// A target is up to where a Reader has to read the record.
type target struct{ seq, batch int64 } // batch is -1 if it is not known

// look gives the next events that are kept. A Reader that has not joined has to read the record up to a target.
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

// ended says why the Reader gives nothing more. The Feed's mu is held.
func (r *Reader) ended() error {
	switch {
	case r.feed.closed:
		return ErrClosed
	case r.backs != r.feed.backs:
		return ErrBackward
	}
	return nil
}

// burst takes some events of the scope. The Feed's mu is held.
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

// know notes which commit belongs to the Feed's seq, if that is still the same.
func (f *Feed) know(seq, batch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seq == seq && f.batch < 0 {
		f.batch = batch
	}
}
