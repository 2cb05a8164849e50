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
	// ErrRead says that other processes read the spool, and no process writes it.
	ErrRead = errors.New("another process reads the spool")
)

// Options configures a Spool.
type Options struct {
	// Dir is the folder. Open makes it if it is missing. Nothing else may be in it.
	Dir string
	// MaxBytes bounds the segments' files.
	MaxBytes int64
	// SegmentBytes is the size from which on a new segment begins. Default: DefaultSegmentBytes, or an eighth of
	// MaxBytes if that is less, because room comes back by whole segments.
	SegmentBytes int64
	// SyncEvery is how long a record may be unsynced while others are appended. Default: DefaultSyncEvery.
	SyncEvery time.Duration
	// ReadOnly changes nothing in the folder, so that a spool on a read-only disk can be read. A change that would be
	// necessary is an error that wraps syscall.EROFS. Released records are there again at the next Open.
	ReadOnly bool
	// Shared is for processes that only read: several of them may have the folder at the same time, and no writer may.
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

// Open locks the folder, and repairs it after a crash: see the package's guarantees.
func Open(o Options) (*Spool, error) {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = min(DefaultSegmentBytes, o.MaxBytes/8)
	}
	if o.SyncEvery <= 0 {
		o.SyncEvery = DefaultSyncEvery
	}
	how := os.O_RDONLY
	if !o.ReadOnly {
		how = os.O_RDWR | os.O_CREATE // so a read-only disk is noticed now, even if there is nothing to write yet
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

// take locks the folder. If it cannot, it returns ErrLocked, or ErrRead if the other processes only read: then a shared
// lock is possible.
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

// Close releases the folder. Its content stays.
func (s *Spool) Close() error {
	s.cursor.close()
	return errors.Join(s.files.close(), s.lock.Close())
}

// Header returns the owner's header of each segment: it names the owner of the records. It is nil for a spool that was
// empty at Open.
func (s *Spool) Header() []byte { return s.files.header }

// Renew gives an empty spool a header, and replaces any earlier one.
func (s *Spool) Renew(header []byte) error {
	if !s.files.empty() {
		return errors.New("spool: cannot renew the header of a spool that is not empty")
	}
	s.files.header = header
	return nil
}

// Begun returns the index of the record with which the spool began when it was last empty. That record may be released,
// or missing.
func (s *Spool) Begun() uint64 { return s.files.begun }

// First returns the index of the oldest record that is not released.
func (s *Spool) First() uint64 { return s.released }

// Next returns the index of the next appended record.
func (s *Spool) Next() uint64 { return s.next }

// Bytes returns the size of the segments' files.
func (s *Spool) Bytes() int64 { return s.files.bytes }

// Aside returns the folder to which Open or SetAside has moved unusable segments. It is empty if there was none.
func (s *Spool) Aside() string { return s.files.aside.folder }

// Append adds a record under the index Next, or under a later one if the spool is empty. After an error no record was
// added; Next of an empty spool may then be the index.
func (s *Spool) Append(index uint64, record []byte) (err error) {
	if s.o.ReadOnly {
		return fmt.Errorf("spool: append: %w", syscall.EROFS)
	}
	if index >= s.next && s.released == s.next {
		if err := s.Release(index); err != nil { // An earlier attempt could not delete everything.
			return err
		}
	}
	if index != s.next && (index < s.next || !s.files.empty()) {
		return fmt.Errorf("spool: append record %d, but record %d is next", index, s.next)
	}
	s.packed = s2.Encode(s.packed[:cap(s.packed)], record)
	if s.files.bytes+s.files.sizeWith(s.packed) > s.o.MaxBytes {
		return ErrFull
	}
	if err := s.rotate(index); err != nil {
		return fmt.Errorf("spool: begin a segment: %w", err)
	}
	if err := s.files.write(s.packed); err != nil {
		s.cursor.close() // The cursor may have read ahead into the part that is cut now.
		return errors.Join(fmt.Errorf("spool: append: %w", err), s.files.cut())
	}
	s.next++
	s.files.syncSometimes()
	return nil
}

// rotate begins a segment at the index, if one is needed.
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

// Read returns the next record that was not read yet; ok is false if there is none. The record is valid until the next
// call. An error is final.
func (s *Spool) Read() (record []byte, ok bool, err error) {
	if s.cursor.index == s.next {
		return nil, false, nil
	}
	if record, err = s.cursor.read(s.files.segments); err != nil {
		return nil, false, err
	}
	return record, true, nil
}

// SeekTo makes Read go on at the record with this index, which is not released.
func (s *Spool) SeekTo(index uint64) { s.cursor.seek(index) }

// Release drops the records before the index. It deletes segments without any remaining record. If no record remains,
// the spool takes no room. If the index is beyond Next, the spool goes on at the index: a power cut took only records
// that are no longer needed.
func (s *Spool) Release(before uint64) error {
	s.next = max(s.next, before)
	s.released = max(s.released, before)
	s.cursor.index = max(s.cursor.index, s.released)
	for !s.files.empty() && s.files.segments[0].end <= s.released && (len(s.files.segments) > 1 || s.released == s.next) {
		s.cursor.closeIn(s.files.segments[0])
		if err := s.files.removeFirst(); err != nil {
			return fmt.Errorf("spool: release: %w", err)
		}
	}
	return nil
}

// SetAside moves all segments to a folder of its own, returns the folder, and goes on empty. After an error the caller
// closes the spool.
func (s *Spool) SetAside() (folder string, err error) {
	s.cursor.close()
	s.released, s.cursor.index = s.next, s.next
	if err := s.files.setAside(); err != nil {
		return "", fmt.Errorf("spool: set aside: %w", err)
	}
	return s.Aside(), nil
}
