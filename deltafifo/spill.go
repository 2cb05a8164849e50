package deltafifo

import (
	"encoding/binary"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// Spool keeps records on disk, in order and numbered without a break, as package spool does.
type Spool interface {
	// Append adds a record whole, or not at all. Its index is Next, or a later one if the spool is empty.
	Append(index uint64, record []byte) error
	// Read gives the next record, valid until the next call. SeekTo sets the index at which Read goes on.
	Read() (record []byte, ok bool, err error)
	SeekTo(index uint64)
	// Release gives up the records before the index.
	Release(before uint64) error
	// First is the oldest record that is not released, Next the one that is appended next.
	First() uint64
	Next() uint64
	Bytes() int64
}

// Codec makes a record of an entry, and back. Decode sets Stream and Bytes, too; its error wraps ErrRecord where the record is at fault.
type Codec interface {
	AppendEntry(to []byte, e *Entry) ([]byte, error)
	DecodeEntry(record []byte) (Entry, error)
}

// Spooled says what of a stream a spool holds from a process before.
type Spooled struct {
	Entries  int
	Position delta.Position // with the last entry; zero if none has moved it
	At       time.Time
}

// SpillEvent says what the queue does with its spool.
type SpillEvent struct {
	Spilling bool  // entries go to the spool
	Err      error // why they cannot
	Entries  int   // in the spool
	Bytes    int64
}

// spill is what a queue holds on disk. Each entry has a number, spooled or not, and a record's index is its entry's number.
// Held nodes that are also in the spool come before held nodes that are not. The oldest of them is the spool's first record.
// Records that are not in memory come after all nodes.
type spill struct {
	spool   Spool
	codec   Codec
	observe func(SpillEvent)
	after   time.Duration // Options.SpillAfter

	on      bool // what is enqueued goes to the spool first
	copied  int  // held nodes that are in the spool, too
	behind  int  // records that are not in memory
	failing bool // the last attempt failed, and there is need of another
	broken  error
	buffer  []byte

	done uint64 // number of the oldest entry that is not committed

	fifos     map[uint64]*FIFO // by the number in the records of this process
	lastFIFO  uint64
	reader    uint64 // the record that the spool reads next
	recovered uint64 // records before this are of a process before
}

// refillBytes bounds what is read back at once: two batches.
const refillBytes = 32 << 20

func (s *spill) begin(o *Options) {
	s.spool, s.codec, s.observe, s.after = o.Spool, o.Codec, o.OnSpill, o.SpillAfter
	s.fifos = map[uint64]*FIFO{}
	if s.observe == nil {
		s.observe = func(SpillEvent) {}
	}
	s.recovered, s.reader, s.done = s.spool.Next(), s.spool.First(), s.spool.First()
	s.spool.SeekTo(s.reader)
	s.behind = int(s.spool.Next() - s.spool.First())
	s.on = s.behind > 0
}

// resumeSpool takes over what a process before has left in the spool.
func (q *Queue) resumeSpool(left map[any]Spooled) {
	for handle, of := range left {
		st := q.streamLocked(handle)
		st.fifos--
		st.behind, st.position, st.positionedAt = of.Entries, of.Position, of.At
	}
}

func (s *spill) number(f *FIFO) {
	if s.spool != nil {
		s.lastFIFO++
		f.number = s.lastFIFO
		s.fifos[f.number] = f
	}
}

func (s *spill) event(err error) {
	s.observe(SpillEvent{Spilling: s.on, Err: err, Entries: s.copied + s.behind, Bytes: s.spool.Bytes()})
}

// acceptLocked takes n into memory, into the spool, or both; it is false where there is no room. I2: nothing is dropped.
func (q *Queue) acceptLocked(n *node) bool {
	if !q.spill.on {
		if q.fitsLocked(n) {
			q.appendLocked(n)
			return true
		}
		if q.spill.spool == nil || !q.beginSpillLocked() {
			return false
		}
	}
	if err := q.writeLocked(n); err != nil {
		// What fits can still wait in memory, but not before what is on disk only (I4).
		if q.spill.behind > 0 || !q.fitsLocked(n) {
			return false
		}
		q.spill.on = false
		q.appendLocked(n)
		return true
	}
	if q.spill.failing {
		q.spill.failing = false
		q.spill.event(nil)
	}
	if q.spill.behind == 0 && q.fitsLocked(n) {
		n.copied = true
		q.spill.copied++
		q.appendLocked(n)
		return true
	}
	q.appendBehindLocked(n)
	return true
}

// SpillOverdue writes all that is held to the spool if the oldest of it has waited for Options.SpillAfter. The owner of a
// queue with a spool calls it every now and then, because nothing else looks at the time.
func (q *Queue) SpillOverdue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.spill.on && q.overdueLocked() {
		q.beginSpillLocked()
	}
}

// overdueLocked says whether what is held waits for so long that it must outlive the process.
func (q *Queue) overdueLocked() bool {
	oldest := q.held.head
	return q.spill.spool != nil && oldest != nil && time.Since(oldest.since) >= q.spill.after
}

// beginSpillLocked writes what is held to the spool, so that the spool begins where the record ends. A process that finds the
// spool after a crash can go on from there (I7). What is held stays in memory as well.
func (q *Queue) beginSpillLocked() bool {
	s := &q.spill
	for n := q.held.head; n != nil; n = n.after {
		if n.copied {
			continue
		}
		if q.writeLocked(n) != nil {
			return false
		}
		n.copied = true
		s.copied++
	}
	s.on, s.failing = true, false
	s.event(nil)
	return true
}

// writeLocked appends n to the spool, behind all that is there.
func (q *Queue) writeLocked(n *node) error {
	s := &q.spill
	number := uint64(0)
	if n.fifo != nil {
		number = n.fifo.number
	}
	s.buffer = binary.AppendUvarint(s.buffer[:0], number)
	s.buffer = binary.AppendUvarint(s.buffer, uint64(len(n.key)))
	s.buffer = append(s.buffer, n.key...)
	var err error
	if s.buffer, err = s.codec.AppendEntry(s.buffer, &n.entry); err == nil {
		err = s.spool.Append(s.done+uint64(s.copied+s.behind), s.buffer)
	}
	if err != nil {
		q.spillFailedLocked(err)
		return err
	}
	return nil
}

func (q *Queue) spillFailedLocked(err error) {
	if !q.spill.failing {
		q.spill.failing = true
		q.spill.event(err)
	}
}

// appendBehindLocked counts what is on disk only.
func (q *Queue) appendBehindLocked(n *node) {
	st := n.stream
	q.spill.behind++
	st.behind++
	st.moveLocked(n)
	n.fifo.appendedLocked(n)
	if st.tails != nil && n.entry.Delta.Type != "" {
		st.tails[n.key] = &node{
			key: n.key, stream: st, record: q.spill.spool.Next() - 1,
			entry: Entry{Delta: cache.Delta{Type: n.entry.Delta.Type, Object: identityOf(n.entry.Delta.Object)}},
		}
	}
	q.held.put(n)
	q.wakeLocked()
}

// identity is what a list is compared with, without the object's text.
type identity struct {
	uid    types.UID
	rv     string
	digest [16]byte
}

// GetUID gives the object's UID.
func (i identity) GetUID() types.UID { return i.uid }

// GetResourceVersion gives the version's.
func (i identity) GetResourceVersion() string { return i.rv }

// Digest gives that of the object's text.
func (i identity) Digest() [16]byte { return i.digest }

func identityOf(obj any) any {
	o, ok := obj.(interface {
		identified
		digested
	})
	if !ok {
		return obj
	}
	return identity{o.GetUID(), o.GetResourceVersion(), o.Digest()}
}

// refillLocked reads back into half of the bound. The other half stays free for what is enqueued once the spool is empty.
func (q *Queue) refillLocked() {
	s := &q.spill
	if s.broken != nil || q.closed {
		return // what is on disk is safe there
	}
	for read := int64(0); s.behind > 0 && read < refillBytes && (q.all.entries == 0 || q.all.bytes < q.maxBytes/2); {
		n, err := q.readLocked()
		if err != nil {
			s.broken = fmt.Errorf("deltafifo: what was spooled cannot be read back; a new start goes on from what can be: %w", err)
			q.wakeLocked()
			return
		}
		read += int64(n.entry.Bytes)
		q.appendReadLocked(n)
	}
	needless := s.behind == 0 && q.line.empty() && q.all.bytes < q.maxBytes/2 && !q.overdueLocked()
	if needless && (s.on || s.failing) {
		s.on, s.failing = false, false
		s.event(nil)
	}
}

func (q *Queue) readLocked() (*node, error) {
	s := &q.spill
	index := s.spool.Next() - uint64(s.behind)
	if s.reader != index {
		s.spool.SeekTo(index) // What was copied is in memory already.
	}
	s.reader = index + 1
	record, ok, err := s.spool.Read()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrRecord
	}
	number, key, payload, err := splitRecord(record)
	if err != nil {
		return nil, err
	}
	n := q.held.get()
	n.key, n.record, n.copied = key, index, true
	if n.entry, err = s.codec.DecodeEntry(payload); err != nil {
		return nil, err
	}
	n.since = time.Now()
	n.since = n.since.Add(-max(0, q.stampLocked(n.since).Sub(n.entry.Observed))) // another process may have stamped it
	if n.stream = q.streams[n.entry.Stream]; n.stream == nil {
		return nil, fmt.Errorf("a record of a stream that is not in the queue: %v", n.entry.Stream)
	}
	if index >= s.recovered {
		n.fifo = s.fifos[number]
	}
	return n, nil
}

func (q *Queue) appendReadLocked(n *node) {
	q.spill.behind--
	q.spill.copied++
	q.linkLocked(n)
	st := n.stream
	st.behind--
	if tail := st.tails[n.key]; tail != nil && tail.record == n.record && tail.entry.Bytes == 0 {
		st.tails[n.key] = n
	}
	st.linkLocked(n)
	q.stirLocked(n)
}

// AwaitMemory waits until nothing of the stream is on disk only. Then a list can be compared with what is known and held. The
// error is cache.ErrFIFOClosed.
func (f *FIFO) AwaitMemory() error {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.awaitMemoryLocked()
}

// awaitMemoryLocked waits until nothing of the stream is on disk only: what a list is compared with must be at hand. It is an error if the
// stream is closed meanwhile.
func (f *FIFO) awaitMemoryLocked() error {
	for f.stream.behind > 0 {
		if f.closed || f.queue.closed {
			return cache.ErrFIFOClosed
		}
		f.stream.arrival.Wait()
	}
	return nil
}

// Offset is the number of the first entry behind the n oldest ones. The numbers of entries rise by one and are the indices of
// their records. Before Done(n), the consumer writes that number where it commits the entries. A process that finds the spool
// after a crash releases what comes before it (I7).
func (q *Queue) Offset(n int) (next uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.spill.done + uint64(n)
}

// committedLocked counts n committed entries, and releases the records of those that were copied.
func (q *Queue) committedLocked(n, copies int) {
	s := &q.spill
	s.done += uint64(n)
	if s.spool == nil {
		return
	}
	if copies > 0 {
		s.copied -= copies
		if err := s.spool.Release(s.done); err != nil {
			q.spillFailedLocked(err)
		}
	}
	q.refillLocked()
}
