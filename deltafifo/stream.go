package deltafifo

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// stream holds the queue's entries of one stream. It outlives a FIFO that is closed while entries are held: the next
// FIFO of the stream must see them.
type stream struct {
	handle any

	// A call that enqueues holds feed, also while it waits for room. So the result of its comparison stays true. It
	// locks feed before the queue's lock.
	feed sync.Mutex

	// The queue's lock protects the rest.
	first, last *node
	fifos       int       // that are open
	arrival     sync.Cond // for Pop: an entry, the end of another Pop, or a Close
	popping     bool
	behind      int // entries on disk only

	position     delta.Position // after the last entry; zero at first
	positionedAt time.Time

	// latestByKey has the last held delta of each key, while it has users. It is kept up to date and not rebuilt for
	// each page of a list, because earlier pages are usually still held.
	latestByKey map[string]*node
	users       int
}

// streams are the streams with held entries or open FIFOs, by their handles. The queue's lock protects them.
type streams map[any]*stream

// open returns the stream for another FIFO. mu is the queue's lock.
func (all streams) open(handle any, mu *sync.Mutex) *stream {
	st := all[handle]
	if st == nil {
		st = &stream{handle: handle}
		st.arrival.L = mu
		all[handle] = st
	}
	st.fifos++
	return st
}

// forget drops a stream that has neither an open FIFO nor entries.
func (all streams) forget(st *stream) {
	if st.fifos == 0 && st.first == nil && st.behind == 0 {
		delete(all, st.handle)
	}
}

// moveLocked notes the position of the stream after n.
func (st *stream) moveLocked(n *node) {
	if n.entry.Position != "" {
		n.entry.Move(&st.position)
		st.positionedAt = n.entry.Observed
	}
}

// linkLocked appends n, which is in memory, to the entries of the stream.
func (st *stream) linkLocked(n *node) {
	if st.last == nil {
		st.first = n
	} else {
		st.last.next = n
	}
	st.last = n
	if st.latestByKey != nil && n.entry.Delta.Type != "" && !n.superseded(st.latestByKey[n.key]) {
		st.latestByKey[n.key] = n
	}
	st.arrival.Broadcast()
}

// removeLocked removes n, the first entry.
func (st *stream) removeLocked(n *node) {
	st.first = n.next
	if st.first == nil {
		st.last = nil
	}
	if st.latestByKey != nil && st.latestByKey[n.key] == n {
		delete(st.latestByKey, n.key)
	}
}

func (st *stream) trackLatestLocked() {
	st.users++
	if st.users > 1 {
		return
	}
	st.latestByKey = map[string]*node{}
	for n := st.first; n != nil; n = n.next {
		if n.entry.Delta.Type != "" {
			st.latestByKey[n.key] = n
		}
	}
}

func (st *stream) untrackLatestLocked() {
	st.users--
	if st.users == 0 {
		st.latestByKey = nil
	}
}

// latestLocked returns the last held state of key. pending is false if no delta of the key is held. alive is false if
// the last one is a deletion.
func (st *stream) latestLocked(key string) (obj any, alive, pending bool) {
	n := st.latestByKey[key]
	if n == nil {
		return nil, false, false
	}
	return n.entry.Delta.Object, n.entry.Delta.Type != cache.Deleted, true
}
