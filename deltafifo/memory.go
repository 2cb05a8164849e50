package deltafifo

import "time"

// memory holds the entries that a queue has in memory, in queue order, within a bound. The queue's lock protects it.
type memory struct {
	nodes    nodes
	maxBytes int64
	all      tally // all held entries
	fresh    tally // the held entries that are not handed out
	cursor   *node // the first node to be handed out
	handed   int   // by Next, and neither done nor requeued
}

// fits reports whether the bound allows n. An empty queue accepts any entry.
func (m *memory) fits(n *node) bool {
	return m.all.entries == 0 || m.all.bytes+int64(n.entry.Bytes) <= m.maxBytes
}

// hasRoom reports whether half of the bound is free.
func (m *memory) hasRoom() bool { return m.all.bytes < m.maxBytes/2 }

// link puts n at the tail.
func (m *memory) link(n *node) {
	m.nodes.append(n)
	m.all.add(n)
	m.fresh.add(n)
	if m.cursor == nil {
		m.cursor = n
	}
}

// unlink removes n. The caller puts n back for reuse.
func (m *memory) unlink(n *node) {
	if m.cursor == n {
		m.cursor = n.after
	}
	if !n.handed {
		m.fresh.sub(n)
	}
	m.all.sub(n)
	m.nodes.unlink(n)
}

func (m *memory) moveToTail(n *node) {
	if m.cursor == n {
		m.cursor = n.after
	}
	m.nodes.unlink(n)
	m.nodes.append(n)
	if m.cursor == nil {
		m.cursor = n
	}
}

// take notes that the consumer has n, and takeBack that it no longer has it.
func (m *memory) take(n *node) {
	n.handed = true
	m.fresh.sub(n)
}

func (m *memory) takeBack(n *node) {
	n.handed = false
	m.fresh.add(n)
}

// handOut takes the oldest entries that are not handed out, up to the limits.
func (m *memory) handOut(l limits) []Entry {
	batch := make([]Entry, 0, min(m.fresh.entries, l.entries))
	bytes := int64(0)
	for n := m.cursor; n != nil && len(batch) < l.entries; n = n.after {
		bytes += int64(n.entry.Bytes)
		if bytes > l.bytes && len(batch) > 0 {
			break
		}
		m.take(n)
		m.cursor = n.after
		batch = append(batch, n.entry)
	}
	m.handed += len(batch)
	return batch
}

// requeue takes back all entries of handOut.
func (m *memory) requeue() {
	for n := m.nodes.head; m.handed > 0; n = n.after {
		m.takeBack(n)
		m.handed--
	}
	m.cursor = m.nodes.head
}

func (m *memory) onlyBookmarks() bool { return m.fresh.entries == m.fresh.bookmarks }

// oldestBookmark returns the time of the oldest waiting entry, if all are bookmarks.
func (m *memory) oldestBookmark() time.Time {
	oldest := m.cursor.since
	for n := m.cursor.after; n != nil; n = n.after {
		if n.since.Before(oldest) {
			oldest = n.since
		}
	}
	return oldest
}

func (m *memory) oldestDelta() time.Time {
	n := m.cursor
	for n.entry.Bookmark() {
		n = n.after
	}
	return n.since
}
