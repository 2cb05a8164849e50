package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/s2"
)

// The defaults of Options.
const (
	DefaultSegmentBytes = 64 << 20
	DefaultSyncEvery    = time.Second
)

var (
	// ErrFull says that a record does not fit into the bound.
	ErrFull = errors.New("the spool is full")
	// ErrLocked says that another process has the spool.
	ErrLocked = errors.New("another process uses the spool")
	// ErrRead says that other processes read the spool, and nothing else.
	ErrRead = errors.New("another process reads the spool")
)

// Options configures a Spool.
type Options struct {
	// Dir is the folder, made where it is missing. Nothing else may be in it.
	Dir string
	// MaxBytes bounds the segments' files.
	MaxBytes int64
	// SegmentBytes is from which size on a new segment is begun. Default: DefaultSegmentBytes, or an eighth of MaxBytes if that is less, since
	// room comes back by whole segments.
	SegmentBytes int64
	// SyncEvery is how long a record may be unsynced while others are appended. Default: DefaultSyncEvery.
	SyncEvery time.Duration
	// ReadOnly changes nothing in the folder, so that a spool on a read-only disk can be read. What would have to be written
	// is an error that wraps syscall.EROFS. Released records are there again at the next Open.
	ReadOnly bool
	// Shared is for who only reads: others who do may have the folder at the same time, and nobody else.
	Shared bool
}

// Spool is an ordered log of records on disk.
type Spool struct {
	o    Options
	lock *flock.Flock

	files    files
	released uint64
	next     uint64 // index of the next record
	cursor   cursor
	packed   []byte
}

// Open takes the folder, and repairs what a crash has left: see the package's guarantees.
func Open(o Options) (*Spool, error) {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = min(DefaultSegmentBytes, o.MaxBytes/8)
	}
	if o.SyncEvery <= 0 {
		o.SyncEvery = DefaultSyncEvery
	}
	how := os.O_RDONLY
	if !o.ReadOnly {
		how = os.O_RDWR | os.O_CREATE // a read-only disk is noticed, though nothing is to be written yet
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
	}
	s := &Spool{o: o, lock: flock.New(filepath.Join(o.Dir, "lock"), flock.SetFlag(how), flock.SetPermissions(0o600)), files: newFiles(&o)}
	err := s.take()
	if err == nil {
		err = s.open()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("spool %s: %w", o.Dir, err), s.Close())
	}
	return s, nil
}

// take locks the folder, or says who has it: what others share could be shared with them.
func (s *Spool) take() error {
	if !s.o.Shared {
		if locked, err := s.lock.TryLock(); locked || err != nil {
			return err
		}
	}
	shared, err := s.lock.TryRLock()
	switch {
	case err != nil:
		return err
	case !shared:
		return ErrLocked
	case !s.o.Shared:
		return ErrRead
	}
	return nil
}

func (s *Spool) open() error {
	if err := s.files.recover(); err != nil {
		return err
	}
	if !s.files.empty() {
		first := s.files.segments[0]
		s.files.header, s.files.begun = first.header, first.begun
		s.released, s.cursor.index = first.first, first.first
		s.next = s.files.last().end
	}
	return nil
}

// Close lets go of the folder. What is in it stays.
func (s *Spool) Close() error {
	s.cursor.close()
	return errors.Join(s.files.close(), s.lock.Close())
}

// Header is the owner's header, which each segment has: whose records these are. It is nil for a spool that was empty at Open.
func (s *Spool) Header() []byte { return s.files.header }

// Renew gives an empty spool a header, in the place of any before.
func (s *Spool) Renew(header []byte) error {
	if !s.files.empty() {
		return errors.New("spool: another header for a spool that is not empty")
	}
	s.files.header = header
	return nil
}

// Begun is the index of the record with which the spool began when it was last empty. It may be released, or missing.
func (s *Spool) Begun() uint64 { return s.files.begun }

// First is the index of the oldest record that is not released, Next that of the next one to be appended.
func (s *Spool) First() uint64 { return s.released }

// Next is the index that the next record gets.
func (s *Spool) Next() uint64 { return s.next }

// Bytes is the size of the segments' files.
func (s *Spool) Bytes() int64 { return s.files.bytes }

// Aside is the folder into which Open, or SetAside, has moved what could not be used; empty if there was nothing.
func (s *Spool) Aside() string { return s.files.aside.folder }

// Append adds a record under the index Next, or under a later one if the spool is empty. After an error no record was added;
// Next of an empty spool may be the index then.
func (s *Spool) Append(index uint64, record []byte) (err error) {
	if s.o.ReadOnly {
		return fmt.Errorf("spool: append: %w", syscall.EROFS)
	}
	if index >= s.next && s.released == s.next {
		if err := s.Release(index); err != nil { // An earlier try could not delete all of it.
			return err
		}
	}
	if index != s.next && (index < s.next || !s.files.empty()) {
		return fmt.Errorf("spool: append record %d where record %d is the next", index, s.next)
	}
	s.packed = s2.Encode(s.packed[:cap(s.packed)], record)
	if s.files.bytes+s.files.sizeWith(s.packed) > s.o.MaxBytes {
		return ErrFull
	}
	if err := s.rotate(index); err != nil {
		return fmt.Errorf("spool: begin a segment: %w", err)
	}
	if err := s.files.write(s.packed); err != nil {
		s.cursor.close() // It may have read ahead into what is cut now.
		return errors.Join(fmt.Errorf("spool: append: %w", err), s.files.cut())
	}
	s.next++
	s.files.syncSometimes()
	return nil
}

// rotate begins a segment with the index where one is needed.
func (s *Spool) rotate(index uint64) error {
	empty := s.files.empty()
	if err := s.files.rotate(index); err != nil {
		return err
	}
	if empty {
		s.released, s.next, s.cursor.index = index, index, index
	}
	return nil
}

// Read gives the next record that was not read yet; ok is false if there is none. The record is valid until the next call. An error is
// final.
func (s *Spool) Read() (record []byte, ok bool, err error) {
	if s.cursor.index == s.next {
		return nil, false, nil
	}
	if record, err = s.cursor.read(s.files.segments); err != nil {
		return nil, false, err
	}
	return record, true, nil
}

// SeekTo lets Read go on at the record with this index, which is not released.
func (s *Spool) SeekTo(index uint64) { s.cursor.seek(index) }

// Release gives up the records before the index. Segments of which nothing is left are deleted; when nothing at all is left, the
// spool takes no room. If the index is beyond Next, the spool goes on there: a power cut took records that nobody needs.
func (s *Spool) Release(before uint64) error {
	s.next = max(s.next, before)
	s.released = max(s.released, before)
	s.cursor.index = max(s.cursor.index, s.released)
	for !s.files.empty() && s.files.segments[0].end <= s.released && (len(s.files.segments) > 1 || s.released == s.next) {
		s.cursor.leave(s.files.segments[0])
		if err := s.files.removeFirst(); err != nil {
			return fmt.Errorf("spool: release: %w", err)
		}
	}
	return nil
}

// SetAside moves all that is there to a folder of its own, which it returns, and goes on empty. After an error it is to be closed.
func (s *Spool) SetAside() (folder string, err error) {
	s.cursor.close()
	s.released, s.cursor.index = s.next, s.next
	if err := s.files.setAside(); err != nil {
		return "", fmt.Errorf("spool: set aside: %w", err)
	}
	return s.Aside(), nil
}
