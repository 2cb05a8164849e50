package kube

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// readChunk is the number of bytes of one read from the connection.
	readChunk = 32 << 10
	// shrinkAbove is the buffer size in bytes above which compact replaces the buffer by a small one.
	shrinkAbove = 1 << 20
)

// FrameTooLargeError is returned if one watch event or list item is larger than [Options].MaxFrameBytes.
type FrameTooLargeError struct {
	Limit     int64
	Namespace string // if it could be read
	Name      string // if it could be read
}

func (e *FrameTooLargeError) Error() string {
	return fmt.Sprintf("one object%s is larger than %d bytes: make the object smaller, or exclude its resource with --exclude",
		named(e.Namespace, e.Name), e.Limit)
}

// recordingReader is a reader that keeps the bytes since a mark. After a value was decoded from the stream, its bytes are
// still there. So an object is decoded in one pass, and its text is kept.
type recordingReader struct {
	source io.Reader
	limit  int64 // the most bytes kept since the mark

	buffer []byte
	base   int64 // stream offset of buffer[0]
	keep   int   // index of the mark
	next   int   // index of the first byte that Read has not returned yet
	failed error // of the source; returned when the buffer is empty
}

// Read implements io.Reader.
func (t *recordingReader) Read(p []byte) (int, error) {
	if t.next == len(t.buffer) {
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.buffer[t.next:])
	t.next += n
	return n, nil
}

// fill reads until at least one more byte is available, or until an error.
func (t *recordingReader) fill() error {
	t.compact()
	if int64(len(t.buffer)) > t.limit {
		return &FrameTooLargeError{Limit: t.limit}
	}
	t.grow()
	for t.failed == nil && t.next == len(t.buffer) {
		free := t.buffer[len(t.buffer) : len(t.buffer)+readChunk]
		n, err := t.source.Read(free)
		t.buffer = t.buffer[:len(t.buffer)+n]
		t.failed = err
	}
	if t.next == len(t.buffer) {
		return t.failed
	}
	return nil
}

// compact drops the bytes before the mark. It also drops the large buffer that one large object needed.
func (t *recordingReader) compact() {
	rest := t.buffer[t.keep:]
	if cap(t.buffer) > shrinkAbove && len(rest) <= readChunk {
		t.buffer = append(make([]byte, 0, 2*readChunk), rest...)
	} else {
		t.buffer = t.buffer[:copy(t.buffer, rest)]
	}
	t.base += int64(t.keep)
	t.next -= t.keep
	t.keep = 0
}

// grow makes room for one chunk.
func (t *recordingReader) grow() {
	if cap(t.buffer)-len(t.buffer) >= readChunk {
		return
	}
	grown := make([]byte, len(t.buffer), 2*len(t.buffer)+2*readChunk)
	copy(grown, t.buffer)
	t.buffer = grown
}

// mark allows compact to drop everything before the stream offset.
func (t *recordingReader) mark(offset int64) { t.keep = int(offset - t.base) }

// copyOf returns a copy of the bytes between two offsets at or after the mark, with extra bytes of spare capacity.
func (t *recordingReader) copyOf(start, end int64, extra int) []byte {
	span := t.buffer[start-t.base : end-t.base]
	if extra == 0 {
		return bytes.Clone(span)
	}
	return append(make([]byte, 0, len(span)+extra), span...)
}
