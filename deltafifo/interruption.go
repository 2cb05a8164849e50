package deltafifo

import "time"

// interruption is what a FIFO has said last about whether its stream proceeds. A new one has said nothing, and does not
// know what was said before it: then both have to be said.
type interruption struct {
	said  bool
	cause string // empty: the stream proceeds
}

// Interrupted enqueues a marker that says that the stream cannot proceed, and why. Saying the same cause again has no
// effect. It blocks until there is room.
func (f *FIFO) Interrupted(cause, detail string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.mark(Interrupted, cause, detail)
}

// Resumed enqueues a marker that says that the stream proceeds again and has missed nothing. Where that is known, it
// has no effect. It blocks until there is room.
func (f *FIFO) Resumed() error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.mark(Resumed, "", "")
}

func (f *FIFO) mark(kind MarkerKind, cause, detail string) error {
	if f.interruption.said && f.interruption.cause == cause {
		return nil
	}
	was := f.interruption.cause
	m := &Marker{Kind: kind, Cause: cause, Detail: detail}
	if kind == Resumed {
		m.Cause = was
	}
	m.FromRV, m.FromTime = f.position()
	if err := f.queue.enqueue(f, "", Entry{Marker: m, Bytes: entryBytes, Attached: f.attach()}); err != nil {
		return err
	}
	f.interruption = interruption{said: true, cause: cause}
	return nil
}

// position gives the last position that was enqueued, and when.
func (f *FIFO) position() (string, time.Time) {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.stream.position, f.stream.positionedAt
}
