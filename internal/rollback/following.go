package rollback

import (
	"time"
)

// acceptedAfter is how long a watch must be open before it counts as accepted. By then, the server would have refused a
// position that is too old.
const acceptedAfter = time.Second

// following says how a stream is followed. Streams.mu protects it.
type following struct {
	onRollback func(proof string) // makes the reflector list after a rollback; nil if the stream is not followed
	denied     bool               // the server refuses the resource, or does not serve it
	openedAt   time.Time          // when the watch was opened; zero if there is none
}

// canAsk reports whether the server can be asked about the stream's resource. It cannot if the stream is not
// followed, or the server refuses or does not serve the resource.
func (f *following) canAsk() bool { return f.onRollback != nil && !f.denied }

// accepted reports whether the server has accepted the position of the watch.
func (f *following) accepted() bool {
	return !f.openedAt.IsZero() && time.Since(f.openedAt) > acceptedAfter
}
