package kube

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// tapeChunk is how much is read from the connection at once, in bytes.
	tapeChunk = 32 << 10
	// tapeShrink is the buffer size above which it is given back after use.
	tapeShrink = 1 << 20
)

// FrameTooLargeError says that one watch event or list item is larger than
// [Options].MaxFrameBytes.
type FrameTooLargeError struct {
	Limit     int64
	Namespace string // as far as it could be read
	Name      string // as far as it could be read
}

func (e *FrameTooLargeError) Error() string {
	return fmt.Sprintf("one object%s is larger than %d bytes; raise the limit of a frame to record it",
		named(e.Namespace, e.Name), e.Limit)
}

// tape is a reader that remembers the bytes since a mark, so that a value's bytes are there after it was decoded from the
// stream. It is how an object is decoded in one pass with its text kept.
type tape struct {
	source io.Reader
	limit  int64 // of bytes held since the mark

	buffer []byte
	base   int64 // stream offset of buffer[0]
	keep   int   // index of the mark
	next   int   // index of the first byte that was not handed out
	failed error // of the source, reported once the buffer is empty
}

// Read implements io.Reader.
func (t *tape) Read(p []byte) (int, error) {
	if t.next == len(t.buffer) {
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.buffer[t.next:])
	t.next += n
	return n, nil
}

// fill reads until there is at least one byte more, or an error.
func (t *tape) fill() error {
	t.compact()
	if int64(len(t.buffer)) > t.limit {
		return &FrameTooLargeError{Limit: t.limit}
	}
	t.grow()
	for t.failed == nil && t.next == len(t.buffer) {
		free := t.buffer[len(t.buffer) : len(t.buffer)+tapeChunk]
		n, err := t.source.Read(free)
		t.buffer = t.buffer[:len(t.buffer)+n]
		t.failed = err
	}
	if t.next == len(t.buffer) {
		return t.failed
	}
	return nil
}

// compact drops what lies before the mark, and a buffer that one large object has
// left behind.
func (t *tape) compact() {
	rest := t.buffer[t.keep:]
	if cap(t.buffer) > tapeShrink && len(rest) <= tapeChunk {
		t.buffer = append(make([]byte, 0, 2*tapeChunk), rest...)
	} else {
		t.buffer = t.buffer[:copy(t.buffer, rest)]
	}
	t.base += int64(t.keep)
	t.next -= t.keep
	t.keep = 0
}

// grow makes room for one chunk.
func (t *tape) grow() {
	if cap(t.buffer)-len(t.buffer) >= tapeChunk {
		return
	}
	grown := make([]byte, len(t.buffer), 2*len(t.buffer)+2*tapeChunk)
	copy(grown, t.buffer)
	t.buffer = grown
}

// mark allows everything before the stream offset to be forgotten.
func (t *tape) mark(offset int64) { t.keep = int(offset - t.base) }

// copyOf returns a copy of the bytes between two offsets, none of them before the mark,
// with room for extra more bytes.
func (t *tape) copyOf(start, end int64, extra int) []byte {
	span := t.buffer[start-t.base : end-t.base]
	if extra == 0 {
		return bytes.Clone(span)
	}
	return append(make([]byte, 0, len(span)+extra), span...)
}
