package deltafifo

import (
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
	return f.InterruptedSince(cause, detail, Until{})
}

// Until is up to where a stream is known to be complete. The zero value is its position.
type Until struct {
	ResourceVersion string
	Time            time.Time // when it was complete up to there
	Common          *Until    // the same where the stream turns out to have gone past that before Time; nil if not known
}

// InterruptedSince is Interrupted for a failure that is noticed late. What was enqueued after that time, or with a later
// version, may be incomplete. The server serves streams that were held up at once, and not in the order of versions. If
// nothing was enqueued, the consumer of the marker knows whether the stream had come that far.
func (f *FIFO) InterruptedSince(cause delta.Cause, detail string, until Until) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	rv, at := f.tail.position()
	if until.ResourceVersion != "" {
		order, known := delta.Compare(until.ResourceVersion, rv)
		late, ahead := rv == "" || until.Time.Before(at), known && order < 0
		switch {
		case late:
			at = until.Time
		case ahead && until.Common != nil:
			until = *until.Common
			at = until.Time
		}
		if ahead || !known && late {
			rv = until.ResourceVersion
		}
	}
	return f.mark(&delta.Marker{Kind: delta.Interrupted, Cause: cause, Detail: detail, FromRV: rv, FromTime: at})
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
