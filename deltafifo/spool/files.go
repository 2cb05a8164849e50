package spool

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// files are the segments of a spool. Each of them continues the previous one.
type files struct {
	dir          string
	readOnly     bool
	segmentBytes int64
	aside        aside

	segments []*segment // in order; the last one is appended to
	file     *os.File   // of the last segment, nil if there is none that can be appended to
	bytes    int64
	header   []byte // of each segment
	begun    uint64 // index with which the spool began when it was last empty

	syncEvery time.Duration
	synced    time.Time
}

func newFiles(o *Options) files {
	return files{
		dir: o.Dir, readOnly: o.ReadOnly, segmentBytes: o.SegmentBytes, aside: aside{dir: o.Dir, readOnly: o.ReadOnly},
		syncEvery: o.SyncEvery, synced: time.Now(),
	}
}

func (f *files) empty() bool { return len(f.segments) == 0 }

func (f *files) last() *segment { return f.segments[len(f.segments)-1] }

// full reports whether the next record begins a segment.
func (f *files) full() bool { return f.file == nil || f.last().size >= f.segmentBytes }

// sizeWith returns by how much the files grow with a record.
func (f *files) sizeWith(packed []byte) int64 {
	size := int64(recordHead + len(packed))
	if f.full() {
		size += int64(headerSize(f.header))
	}
	return size
}

// write appends a record to the last segment.
func (f *files) write(packed []byte) error {
	last := f.last()
	if err := writeRecord(f.file, last.size, packed); err != nil {
		return err
	}
	written := int64(recordHead + len(packed))
	last.size += written
	last.end++
	f.bytes += written
	return nil
}

// cut removes a half-written record. If that fails, too, the next append overwrites it.
func (f *files) cut() error { return f.file.Truncate(f.last().size) }

// syncSometimes bounds the loss of a power cut. A failed sync does not fail the append: every reader sees the record.
func (f *files) syncSometimes() {
	if now := time.Now(); now.Sub(f.synced) >= f.syncEvery {
		f.synced = now
		_ = f.file.Sync()
	}
}

// rotate begins a segment at the index if there is none, or the last one is full.
func (f *files) rotate(index uint64) error {
	if !f.full() {
		return nil
	}
	if f.file != nil {
		// Only the newest segment may be torn.
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	begun := f.begun
	if f.empty() {
		begun = index
	}
	made, file, err := create(f.dir, begun, index, f.header)
	if err != nil {
		return err
	}
	f.begun = begun
	f.appendTo(made, file)
	return nil
}

// appendTo makes the segment the last one.
func (f *files) appendTo(last *segment, file *os.File) {
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file = file
	f.segments = append(f.segments, last)
	f.bytes += last.size
}

// removeFirst deletes the first segment. If it cannot, the segment stays in use: records of a later run would
// not continue it.
func (f *files) removeFirst() error {
	first := f.segments[0]
	if !f.readOnly {
		if err := os.Remove(first.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.segments = f.segments[1:]
	f.bytes -= first.size
	if !f.empty() || f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}

// setAside moves all segments aside.
func (f *files) setAside() error {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
	all := f.segments
	f.segments, f.bytes = nil, 0
	return f.aside.move(all)
}

func (f *files) close() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.file.Sync(), f.file.Close())
	f.file = nil
	return err
}
