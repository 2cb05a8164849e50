package deltafifo

import "time"

// node is one held entry. The nodes of a queue are linked in queue order, and the nodes of a stream are linked once
// more. Pop takes from the middle of the queue, where neither a ring nor a slice could remove an entry in constant
// time.
type node struct {
	entry         Entry
	key           string
	feeder        *feeder // nil if an earlier process spooled the entry, or its FIFO was closed before the entry was read back
	stream        *stream
	before, after *node     // in the queue
	next          *node     // in the stream
	since         time.Time // when the entry came, or the first of the bookmarks merged into it; by the runtime's clock
	handed        bool      // the consumer has it, and it is neither done nor taken back
	copied        bool      // in the spool as well
	record        uint64    // its index in the spool, if it was read back from there or is on disk only
}

// maxSpare bounds the nodes kept for reuse, to about 2 MB.
const maxSpare = 8192

// nodes is a list of nodes, and of cleared nodes for reuse.
type nodes struct {
	head, tail *node
	spare      *node
	spares     int
}

func (l *nodes) get() *node {
	n := l.spare
	if n == nil {
		return &node{}
	}
	l.spare, n.after = n.after, nil
	l.spares--
	return n
}

// put clears n, so that it retains nothing, and keeps it for reuse.
func (l *nodes) put(n *node) {
	*n = node{}
	if l.spares == maxSpare {
		return
	}
	n.after, l.spare = l.spare, n
	l.spares++
}

func (l *nodes) append(n *node) {
	n.before, n.after = l.tail, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.after = n
	}
	l.tail = n
}

func (l *nodes) unlink(n *node) {
	if n.before == nil {
		l.head = n.after
	} else {
		n.before.after = n.after
	}
	if n.after == nil {
		l.tail = n.before
	} else {
		n.after.before = n.before
	}
	n.before, n.after = nil, nil
}

// tally counts nodes.
type tally struct {
	entries, bookmarks int
	bytes              int64
}

func (t *tally) add(n *node) { t.change(n, 1) }

func (t *tally) sub(n *node) { t.change(n, -1) }

func (t *tally) change(n *node, by int) {
	t.entries += by
	t.bytes += int64(by) * int64(n.entry.Bytes)
	if n.entry.Bookmark() {
		t.bookmarks += by
	}
}
