package deltafifo

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// interruption is the last state that a FIFO has reported: whether its stream proceeds. A new FIFO has reported nothing
// and does not know earlier reports. So it reports either state once.
type interruption struct {
	said   bool
	cause  delta.Cause // empty: the stream proceeds
	detail string
}

// Interrupted enqueues a marker that says that the stream cannot proceed, and why. A second call with the same cause
// has no effect, unless it names other objects that cannot be decoded. It blocks until there is room.
func (f *FIFO) Interrupted(cause delta.Cause, detail string) error {
	return f.InterruptedSince(cause, detail, Begin{})
}

// Begin is where a gap begins: up to there the stream is known to be complete. The zero value stands for the stream's
// position. Without a ResourceVersion, the gap begins at the stream's own version, since Time at the latest.
type Begin struct {
	ResourceVersion string
	Time            time.Time // when it was complete up to there
}

// InterruptedSince is Interrupted for a failure that is noticed late. Entries enqueued after begin.Time, or with a
// later version, may be incomplete. If no entry was enqueued, the consumer of the marker knows whether the stream had
// come that far.
func (f *FIFO) InterruptedSince(cause delta.Cause, detail string, begin Begin) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	rv, at := f.tail.completeUntil(begin)
	return f.mark(&delta.Marker{Kind: delta.Interrupted, Cause: cause, Detail: detail, FromRV: rv, FromTime: at})
}

// Interruption names a stream that was interrupted before the recorder noticed it.
type Interruption struct {
	Stream any // its handle
	Begin  Begin
}

// InterruptTogether enqueues one entry that says why several streams cannot proceed. So all the gaps are committed, or
// none. It blocks until there is room, or ctx ends.
func (q *Queue) InterruptTogether(ctx context.Context, cause delta.Cause, detail string, streams []Interruption) error {
	if len(streams) == 0 {
		return nil
	}
	e := Entry{Bytes: len(streams) * entryBytes, Others: make([]OtherStream, 0, len(streams)-1)}
	var first *FIFO
	for _, s := range streams {
		f := q.FIFO(FIFOOptions{Stream: s.Stream})
		defer f.Close()
		rv, at := f.tail.completeUntil(s.Begin)
		if first == nil {
			first, e.Marker = f, &delta.Marker{Kind: delta.Interrupted, Cause: cause, Detail: detail, FromRV: rv, FromTime: at}
			continue
		}
		e.Others = append(e.Others, OtherStream{Stream: s.Stream, FromRV: rv, FromTime: at})
	}
	defer context.AfterFunc(ctx, first.Close)()
	return q.enqueue(first.feeder, "", e)
}

// Resumed enqueues a marker that says that the stream proceeds again and has missed nothing. If the FIFO has already
// said so, the call has no effect. It blocks until there is room.
func (f *FIFO) Resumed() error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	rv, at := f.tail.position()
	return f.mark(&delta.Marker{Kind: delta.Resumed, FromRV: rv, FromTime: at})
}

func (f *FIFO) mark(m *delta.Marker) error {
	cause := m.Cause
	if f.interruption.said && f.interruption.cause == cause && (cause != delta.CauseUndecodable || f.interruption.detail == m.Detail) {
		return nil
	}
	if m.Kind == delta.Resumed {
		m.Cause = f.interruption.cause
	}
	if err := f.feeder.mark(m, ""); err != nil {
		return err
	}
	f.interruption = interruption{said: true, cause: cause, detail: m.Detail}
	return nil
}
