package deltafifo

import (
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// Spool keeps records on disk, in order and numbered without a break, as package spool does.
type Spool interface {
	// Append adds a record whole, or not at all. Its index is Next, or a later one if the spool is empty.
	Append(index uint64, record []byte) error
	// Read returns the next record, valid until the next call. SeekTo sets the index at which Read goes on.
	Read() (record []byte, ok bool, err error)
	SeekTo(index uint64)
	// Release drops the records before the index.
	Release(before uint64) error
	// First is the index of the oldest record that is not released. Next is the index of the next appended record.
	First() uint64
	Next() uint64
	Bytes() int64
}

// Codec makes a record of an entry, and an entry of a record. DecodeEntry also sets Stream and Bytes. If the record is
// at fault, its error wraps ErrRecord.
type Codec interface {
	AppendEntry(to []byte, e *Entry) ([]byte, error)
	DecodeEntry(record []byte) (Entry, error)
}

// Spooled describes the entries of a stream that an earlier process left in a spool.
type Spooled struct {
	Entries  int
	Position delta.Position // after the last entry; zero if none has moved it
	At       time.Time
}

// SpillEvent reports how the queue uses its spool.
type SpillEvent struct {
	Spilling bool  // entries go to the spool
	Err      error // why they cannot
	Entries  int   // in the spool
	Bytes    int64
}

// spill is the part of a queue on disk. Each entry has a number, spooled or not, and a record's index is its entry's
// number. Held nodes that are also in the spool come before held nodes that are not. The oldest of them is the spool's
// first record. Records that are not in memory come after all nodes. The queue's lock protects it.
type spill struct {
	records records
	observe func(SpillEvent)
	after   time.Duration // Options.SpillAfter

	on      bool // new entries go to the spool first
	copied  int  // held nodes that are in the spool, too
	behind  int  // records that are not in memory
	failing bool // the last attempt failed, and the queue still has to spill
	broken  error

	done uint64 // number of the oldest entry that is not committed
}

// refillBytes bounds how much one refill reads back: two batches.
const refillBytes = 32 << 20

func newSpill(o *Options) spill {
	s := spill{records: newRecords(o.Spool, o.Codec), observe: o.OnSpill, after: o.SpillAfter}
	if s.observe == nil {
		s.observe = func(SpillEvent) {}
	}
	s.done = o.Spool.First()
	s.behind = int(o.Spool.Next() - s.done)
	s.on = s.behind > 0
	return s
}

// inUse reports whether the queue has a spool.
func (s *spill) inUse() bool { return s.records.spool != nil }

func (s *spill) event(err error) {
	s.observe(SpillEvent{Spilling: s.on, Err: err, Entries: s.copied + s.behind, Bytes: s.records.spool.Bytes()})
}

func (s *spill) failed(err error) {
	if !s.failing {
		s.failing = true
		s.event(err)
	}
}

func (s *spill) succeeded() {
	if s.failing {
		s.failing = false
		s.event(nil)
	}
}

// overdue reports whether the oldest held entry has waited so long that the entries must survive the process.
func (s *spill) overdue(oldest *node) bool {
	return s.inUse() && oldest != nil && time.Since(oldest.since) >= s.after
}

// begin writes all held entries to the spool, so that the spool begins where the record ends. A process that finds the
// spool after a crash can go on from there (I7). The entries stay in memory as well.
func (s *spill) begin(held *memory) bool {
	for n := held.nodes.head; n != nil; n = n.after {
		if n.copied {
			continue
		}
		if s.write(n) != nil {
			return false
		}
		s.note(n)
	}
	s.on, s.failing = true, false
	s.event(nil)
	return true
}

// stop ends the spilling.
func (s *spill) stop() {
	if s.on || s.failing {
		s.on, s.failing = false, false
		s.event(nil)
	}
}

// note notes that n is in memory and in the spool.
func (s *spill) note(n *node) {
	n.copied = true
	s.copied++
}

// write appends n to the spool.
func (s *spill) write(n *node) error {
	err := s.records.append(s.done+uint64(s.copied+s.behind), n)
	if err != nil {
		s.failed(err)
	}
	return err
}

// read reads the oldest record that is not in memory.
func (s *spill) read(into *node) error {
	return s.records.read(s.records.spool.Next()-uint64(s.behind), into)
}

// committed counts n committed entries, and releases the records of the copied ones.
func (s *spill) committed(n, copies int) {
	s.done += uint64(n)
	if copies == 0 {
		return
	}
	s.copied -= copies
	if err := s.records.spool.Release(s.done); err != nil {
		s.failed(err)
	}
}
