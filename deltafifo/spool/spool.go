package spool

import (
	"errors"
	"fmt"
	"io/fs"
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

	segments []*segment // in order; the last one is appended to
	file     *os.File   // of the last segment, nil if there is none that can be appended to
	bytes    int64
	header   []byte // of each segment
	begun    uint64 // index with which it began when it was last empty
	released uint64
	next     uint64 // index of the next record
	synced   time.Time

	reading *reader
	read    uint64 // index of the next record to be read

	asideDir string
	packed   []byte
	plain    []byte
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
	s := &Spool{o: o, lock: flock.New(filepath.Join(o.Dir, "lock"), flock.SetFlag(how), flock.SetPermissions(0o600)), synced: time.Now()}
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
	if err := s.recover(); err != nil {
		return err
	}
	if len(s.segments) > 0 {
		first := s.segments[0]
		s.header, s.begun, s.released, s.read = first.header, first.begun, first.first, first.first
		s.next = s.last().end
	}
	return nil
}

// Close lets go of the folder. What is in it stays.
func (s *Spool) Close() error {
	var errs []error
	s.endReading()
	if s.file != nil {
		errs = append(errs, s.file.Sync(), s.file.Close())
		s.file = nil
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// Header is the owner's header, which each segment has: whose records these are. It is nil for a spool that was empty at Open.
func (s *Spool) Header() []byte { return s.header }

// Renew gives an empty spool a header, in the place of any before.
func (s *Spool) Renew(header []byte) error {
	if len(s.segments) > 0 {
		return errors.New("spool: another header for a spool that is not empty")
	}
	s.header = header
	return nil
}

// Begun is the index of the record with which the spool began when it was last empty. It may be released, or missing.
func (s *Spool) Begun() uint64 { return s.begun }

// First is the index of the oldest record that is not released, Next that of the next one to be appended.
func (s *Spool) First() uint64 { return s.released }

// Next is the index that the next record gets.
func (s *Spool) Next() uint64 { return s.next }

// Bytes is the size of the segments' files.
func (s *Spool) Bytes() int64 { return s.bytes }

// Aside is the folder into which Open, or SetAside, has moved what could not be used; empty if there was nothing.
func (s *Spool) Aside() string { return s.asideDir }

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
	if index != s.next && (index < s.next || len(s.segments) > 0) {
		return fmt.Errorf("spool: append record %d where record %d is the next", index, s.next)
	}
	s.packed = s2.Encode(s.packed[:cap(s.packed)], record)
	size := int64(recordHead + len(s.packed))
	if s.file == nil || s.last().size >= s.o.SegmentBytes {
		size += int64(headerSize(s.header))
	}
	if s.bytes+size > s.o.MaxBytes {
		return ErrFull
	}
	if err := s.rotate(index); err != nil {
		return fmt.Errorf("spool: begin a segment: %w", err)
	}
	last := s.last()
	if err := writeRecord(s.file, last.size, s.packed); err != nil {
		s.endReading() // It may have read ahead into what is cut now.
		return errors.Join(fmt.Errorf("spool: append: %w", err), s.cut(last))
	}
	written := int64(recordHead + len(s.packed))
	last.size += written
	last.end++
	s.bytes += written
	s.next++
	s.syncSometimes()
	return nil
}

func (s *Spool) last() *segment { return s.segments[len(s.segments)-1] }

// cut takes back a half-written record. Where even that fails, the next append writes over it.
func (s *Spool) cut(last *segment) error { return s.file.Truncate(last.size) }

// syncSometimes bounds what a power cut takes. A failed sync is no failed append: the record is there for every reader.
func (s *Spool) syncSometimes() {
	if now := time.Now(); now.Sub(s.synced) >= s.o.SyncEvery {
		s.synced = now
		_ = s.file.Sync()
	}
}

// rotate begins a segment with the index where there is none, or the last one is full.
func (s *Spool) rotate(index uint64) error {
	if s.file != nil && s.last().size < s.o.SegmentBytes {
		return nil
	}
	if s.file != nil {
		// Only the newest segment may be torn.
		if err := s.file.Sync(); err != nil {
			return err
		}
	}
	begun := s.begun
	if len(s.segments) == 0 {
		begun = index
	}
	made, file, err := create(s.o.Dir, begun, index, s.header)
	if err != nil {
		return err
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	if len(s.segments) == 0 {
		s.begun, s.released, s.read, s.next = index, index, index, index
	}
	s.file = file
	s.segments = append(s.segments, made)
	s.bytes += made.size
	return nil
}

// Read gives the next record that was not read yet; ok is false if there is none. The record is valid until the next call. An error is
// final.
func (s *Spool) Read() (record []byte, ok bool, err error) {
	if s.read == s.next {
		return nil, false, nil
	}
	if s.reading == nil || s.read == s.reading.segment.end {
		if err := s.openReader(); err != nil {
			return nil, false, fmt.Errorf("spool: read record %d: %w", s.read, err)
		}
	}
	packed, err := s.reading.next()
	if err == nil {
		s.plain, err = s2.Decode(s.plain[:cap(s.plain)], packed)
	}
	if err != nil {
		return nil, false, fmt.Errorf("spool: read record %d: %w", s.read, err)
	}
	s.read++
	return s.plain, true, nil
}

func (s *Spool) openReader() error {
	s.endReading()
	for _, segment := range s.segments {
		if s.read >= segment.first && s.read < segment.end {
			r, err := segment.open()
			if err != nil {
				return err
			}
			s.reading = r
			return r.skip(s.read - segment.first)
		}
	}
	return errors.New("it is in no segment")
}

func (s *Spool) endReading() {
	if s.reading != nil {
		s.reading.close()
		s.reading = nil
	}
}

// SeekTo lets Read go on at the record with this index, which is not released.
func (s *Spool) SeekTo(index uint64) {
	s.endReading()
	s.read = index
}

// Release gives up the records before the index. Segments of which nothing is left are deleted; when nothing at all is left, the
// spool takes no room. If the index is beyond Next, the spool goes on there: a power cut took records that nobody needs.
func (s *Spool) Release(before uint64) error {
	s.next = max(s.next, before)
	s.released = max(s.released, before)
	s.read = max(s.read, s.released)
	for len(s.segments) > 0 && s.segments[0].end <= s.released && (len(s.segments) > 1 || s.released == s.next) {
		if err := s.removeFirst(); err != nil {
			return fmt.Errorf("spool: release: %w", err)
		}
	}
	return nil
}

// removeFirst leaves a segment that cannot be deleted where it is: a later run of records would not follow it.
func (s *Spool) removeFirst() error {
	first := s.segments[0]
	if !s.o.ReadOnly {
		if err := os.Remove(first.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if s.reading != nil && s.reading.segment == first {
		s.endReading()
	}
	s.segments = s.segments[1:]
	s.bytes -= first.size
	if len(s.segments) > 0 || s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}
