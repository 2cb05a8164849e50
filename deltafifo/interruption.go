package deltafifo

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// interruption is what a FIFO has said last about whether its stream proceeds. A new one has said nothing, and does not
// know what was said before it: then both have to be said.
type interruption struct {
	said  bool
	cause delta.Cause // empty: the stream proceeds
}

// Interrupted enqueues a marker that says that the stream cannot proceed, and why. Saying the same cause again has no
// effect. It blocks until there is room.
func (f *FIFO) Interrupted(cause delta.Cause, detail string) error {
	return f.InterruptedSince(cause, detail, Begin{})
}

// Begin is where a gap begins: up to there the stream is known to be complete. The zero value is its position. Without a ResourceVersion it is the
// stream's own, since Time at the latest.
type Begin struct {
	ResourceVersion string
	Time            time.Time // when it was complete up to there
}

// InterruptedSince is Interrupted for a failure that is noticed late. What was enqueued after that time, or with a later
// version, may be incomplete. If nothing was enqueued, the consumer of the marker knows whether the stream had come that far.
func (f *FIFO) InterruptedSince(cause delta.Cause, detail string, begin Begin) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	rv, at := f.tail.completeUntil(begin)
	return f.mark(&delta.Marker{Kind: delta.Interrupted, Cause: cause, Detail: detail, FromRV: rv, FromTime: at})
}

// Late is a stream that was interrupted before that was noticed.
type Late struct {
	Stream any // its handle
	Begin  Begin
}

// InterruptTogether enqueues one entry that says of several streams that they cannot proceed, and why. So all of it is
// committed, or nothing. It blocks until there is room, or ctx ends.
func (q *Queue) InterruptTogether(ctx context.Context, cause delta.Cause, detail string, streams []Late) error {
	if len(streams) == 0 {
		return nil
	}
	e := Entry{Bytes: len(streams) * entryBytes, Beside: make([]Beside, 0, len(streams)-1)}
	var first *FIFO
	for _, s := range streams {
		f := q.FIFO(FIFOOptions{Stream: s.Stream})
		defer f.Close()
		rv, at := f.tail.completeUntil(s.Begin)
		if first == nil {
			first, e.Marker = f, &delta.Marker{Kind: delta.Interrupted, Cause: cause, Detail: detail, FromRV: rv, FromTime: at}
			continue
		}
		e.Beside = append(e.Beside, Beside{Stream: s.Stream, FromRV: rv, FromTime: at})
	}
	defer context.AfterFunc(ctx, first.Close)()
	return q.enqueue(first.feeder, "", e)
}

// Resumed enqueues a marker that says that the stream proceeds again and has missed nothing. Where that is known, it
// has no effect. It blocks until there is room.
func (f *FIFO) Resumed() error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	rv, at := f.tail.position()
	return f.mark(&delta.Marker{Kind: delta.Resumed, FromRV: rv, FromTime: at})
}

func (f *FIFO) mark(m *delta.Marker) error {
	cause := m.Cause
	if f.interruption.said && f.interruption.cause == cause {
		return nil
	}
	if m.Kind == delta.Resumed {
		m.Cause = f.interruption.cause
	}
	if err := f.feeder.mark(m, ""); err != nil {
		return err
	}
	f.interruption = interruption{said: true, cause: cause}
	return nil
}
