package rollback

import (
	"time"
)

// acceptedAfter is how long a watch has been open at least when it will no longer be refused because its position is too old.
const acceptedAfter = time.Second

// following is how a stream is followed. Streams.mu protects it.
type following struct {
	notify func(proof string) // has the stream leave its history; nil where it is not followed
	denied bool               // the server refuses it, or does not serve it
	opened time.Time          // when the watch was opened; zero if there is none
}

// asks reports whether the server can be asked for the stream. It cannot for one that is not served any more.
func (f *following) canAsk() bool { return f.notify != nil && !f.denied }

// watches reports whether the watch will no longer be refused because its position is too old.
func (f *following) accepted() bool {
	return !f.opened.IsZero() && time.Since(f.opened) > acceptedAfter
}
