package deltafifo

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// backlog holds all entries of a queue in one order: first the entries in memory, then the entries on disk only. The
// queue's lock protects it.
type backlog struct {
	memory  memory
	disk    spill
	streams streams
	clock   clock
	next    *sleeper // wakes Next when an entry comes
}

// clock stamps entries. It never goes back.
type clock struct {
	now     func() time.Time // nil: the runtime's clock
	stamped time.Time
}

// stamp returns the time for an entry that arrives now, by the runtime's clock.
func (c *clock) stamp(now time.Time) time.Time {
	if c.now != nil {
		now = c.now()
	}
	if now.After(c.stamped) {
		c.stamped = now
	}
	return c.stamped
}

// resume takes over the entries that an earlier process left in the spool. mu is the queue's lock.
func (b *backlog) resume(left map[any]Spooled, mu *sync.Mutex) {
	for handle, of := range left {
		st := b.streams.open(handle, mu)
		st.fifos--
		st.behind, st.position, st.positionedAt = of.Entries, of.Position, of.At
	}
}

// arrive returns the node of an entry that comes now.
func (b *backlog) arrive(f *feeder, key string, e Entry) *node {
	n := b.memory.nodes.get()
	n.entry, n.key, n.feeder, n.stream = e, key, f, f.stream
	n.entry.Stream = f.stream.handle
	n.since = time.Now()
	n.entry.Observed = b.clock.stamp(n.since)
	return n
}

// accept takes n into memory, onto the disk, or both. It returns false if there is no room. I2: nothing is dropped.
func (b *backlog) accept(n *node) bool {
	if !b.disk.on {
		if b.memory.fits(n) {
			b.append(n)
			return true
		}
		if !b.disk.inUse() || !b.disk.begin(&b.memory) {
			return false
		}
	}
	if err := b.disk.write(n); err != nil {
		// An entry that fits can still wait in memory, but not before entries that are on disk only (I4).
		if b.disk.behind > 0 || !b.memory.fits(n) {
			return false
		}
		b.disk.on = false
		b.append(n)
		return true
	}
	b.disk.succeeded()
	if b.disk.behind == 0 && b.memory.fits(n) {
		b.disk.note(n)
		b.append(n)
		return true
	}
	b.appendBehind(n)
	return true
}

func (b *backlog) append(n *node) {
	b.memory.link(n)
	n.feeder.appendedLocked(n)
	n.stream.moveLocked(n)
	n.stream.linkLocked(n)
	b.next.stir(n, &b.memory.fresh)
}

// appendBehind counts an entry that is on disk only.
func (b *backlog) appendBehind(n *node) {
	st := n.stream
	b.disk.behind++
	st.behind++
	st.moveLocked(n)
	n.feeder.appendedLocked(n)
	if st.latestByKey != nil && n.entry.Delta.Type != "" {
		st.latestByKey[n.key] = &node{
			key: n.key, stream: st, record: b.disk.records.spool.Next() - 1,
			entry: Entry{Delta: cache.Delta{Type: n.entry.Delta.Type, Object: identityOf(n.entry.Delta.Object)}},
		}
	}
	b.memory.nodes.put(n)
	b.next.rouse()
}

// spillOverdue begins to spill if the oldest held entry is overdue: it must survive the process.
func (b *backlog) spillOverdue() {
	if !b.disk.on && b.disk.overdue(b.memory.nodes.head) {
		b.disk.begin(&b.memory)
	}
}

// refill reads records back into half of the bound. The other half stays free for new entries once the spool is empty.
func (b *backlog) refill(waiting bool) {
	d := &b.disk
	if d.broken != nil {
		return
	}
	for read := int64(0); d.behind > 0 && read < refillBytes && (b.memory.all.entries == 0 || b.memory.hasRoom()); {
		n, err := b.read()
		if err != nil {
			d.broken = fmt.Errorf("deltafifo: spooled entries cannot be read back; restart to go on with the readable ones: %w", err)
			b.next.rouse()
			return
		}
		read += int64(n.entry.Bytes)
		b.appendRead(n)
	}
	if d.behind == 0 && !waiting && b.memory.hasRoom() && !d.overdue(b.memory.nodes.head) {
		d.stop()
	}
}

// read returns the node of the oldest entry that is on disk only.
func (b *backlog) read() (*node, error) {
	n := b.memory.nodes.get()
	if err := b.disk.read(n); err != nil {
		return nil, err
	}
	n.since = time.Now()
	n.since = n.since.Add(-max(0, b.clock.stamp(n.since).Sub(n.entry.Observed))) // another process may have stamped it
	if n.stream = b.streams[n.entry.Stream]; n.stream == nil {
		return nil, fmt.Errorf("a record of a stream that is not in the queue: %v", n.entry.Stream)
	}
	return n, nil
}

func (b *backlog) appendRead(n *node) {
	b.disk.behind--
	b.disk.note(n)
	b.memory.link(n)
	st := n.stream
	st.behind--
	if tail := st.latestByKey[n.key]; tail != nil && tail.record == n.record && tail.entry.Bytes == 0 {
		st.latestByKey[n.key] = n
	}
	st.linkLocked(n)
	b.next.stir(n, &b.memory.fresh)
}

// commit removes the n oldest entries, which are handed out, and releases their records.
func (b *backlog) commit(n int) {
	b.memory.handed -= n
	copies := 0
	for range n {
		oldest := b.memory.nodes.head
		if oldest.copied {
			copies++
		}
		b.remove(oldest)
	}
	b.disk.committed(n, copies)
}

// remove removes the oldest node of its stream. The caller then admits waiting calls (admitLocked). I1: a delta is
// removed only by Done, or by Pop after its process function succeeded. Pop also removes the bookmarks and markers that it passes
// over.
func (b *backlog) remove(n *node) {
	b.memory.unlink(n)
	n.stream.removeLocked(n)
	if n.feeder != nil && n.entry.Delta.Type != "" {
		n.feeder.syncing.removed()
	}
	b.streams.forget(n.stream)
	b.memory.nodes.put(n)
}
