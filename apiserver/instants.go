package apiserver

import (
	"sync/atomic"

	"k8s.io/utils/lru"
)

// instants caches requested instants. An instant before the last seq never changes.
type instants struct {
	kept *lru.Cache // of *instant by instantID
	last atomic.Pointer[ending]
}

type instantID struct{ seq, revision int64 }

// An ending is the instant of the last seq. Each commit can change it, because lists without objects may follow.
type ending struct {
	id    instantID
	batch int64
	at    *instant
}

// get returns a cached instant before the last seq, nil if it is not cached.
func (i *instants) get(id instantID) *instant {
	known, ok := i.kept.Get(id)
	if !ok {
		return nil
	}
	return known.(*instant)
}

func (i *instants) add(id instantID, at *instant) { i.kept.Add(id, at) }

// atEnd returns the cached instant of the last seq at a commit, nil if it is not cached.
func (i *instants) atEnd(id instantID, batch int64) *instant {
	last := i.last.Load()
	if last == nil || last.id != id || last.batch != batch {
		return nil
	}
	return last.at
}

// end caches the instant of the last seq at a commit.
func (i *instants) end(id instantID, batch int64, at *instant) {
	i.last.Store(&ending{id: id, batch: batch, at: at})
}
