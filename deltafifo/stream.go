package deltafifo

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// stream is what the queue holds of one stream. It outlives a FIFO that is closed with entries held: the next FIFO of
// the stream must see them.
type stream struct {
	handle any

	// feed is held by the call that enqueues, also while it waits for room: what it has compared stays true. It is
	// taken before the queue's lock.
	feed sync.Mutex

	// The rest is protected by the queue's lock.
	first, last *node
	fifos       int       // that are open
	arrival     sync.Cond // for Pop: an entry, the end of another Pop, or a Close
	popping     bool
	behind      int // entries on disk only

	position     delta.Position // with the last entry; zero at first
	positionedAt time.Time

	// tails has the last held delta of each key, while users of it exist. It is kept up to date rather than made for
	// each page of a list, whose earlier pages are usually still held.
	tails map[string]*node
	users int
}

// streams are those of which a queue holds something, or that are fed, by their handles. The queue's lock protects them.
type streams map[any]*stream

// open gives the stream for another FIFO. mu is the queue's lock.
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

// forget drops a stream of which nothing is left.
func (all streams) forget(st *stream) {
	if st.fifos == 0 && st.first == nil && st.behind == 0 {
		delete(all, st.handle)
	}
}

// moveLocked notes the position that the stream has with n.
func (st *stream) moveLocked(n *node) {
	if n.entry.Position != "" {
		n.entry.Move(&st.position)
		st.positionedAt = n.entry.Observed
	}
}

// linkLocked puts n, which is in memory, behind what is.
func (st *stream) linkLocked(n *node) {
	if st.last == nil {
		st.first = n
	} else {
		st.last.next = n
	}
	st.last = n
	if st.tails != nil && n.entry.Delta.Type != "" && !n.superseded(st.tails[n.key]) {
		st.tails[n.key] = n
	}
	st.arrival.Broadcast()
}

// leaveLocked removes n, which is the first.
func (st *stream) leaveLocked(n *node) {
	st.first = n.next
	if st.first == nil {
		st.last = nil
	}
	if st.tails != nil && st.tails[n.key] == n {
		delete(st.tails, n.key)
	}
}

func (st *stream) useTailsLocked() {
	st.users++
	if st.users > 1 {
		return
	}
	st.tails = map[string]*node{}
	for n := st.first; n != nil; n = n.next {
		if n.entry.Delta.Type != "" {
			st.tails[n.key] = n
		}
	}
}

func (st *stream) releaseTailsLocked() {
	st.users--
	if st.users == 0 {
		st.tails = nil
	}
}

// tailLocked gives the last held state of key. pending is false if nothing of it is held; alive is false if the last
// is a deletion.
func (st *stream) tailLocked(key string) (obj any, alive, pending bool) {
	n := st.tails[key]
	if n == nil {
		return nil, false, false
	}
	return n.entry.Delta.Object, n.entry.Delta.Type != cache.Deleted, true
}
