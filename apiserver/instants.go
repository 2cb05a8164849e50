package apiserver

import (
	"sync/atomic"

	"k8s.io/utils/lru"
)

// instants keeps those that were asked for. One before the last seq never changes.
type instants struct {
	kept *lru.Cache // of *instant by instantID
	last atomic.Pointer[ending]
}

type instantID struct{ seq, revision int64 }

// An ending is the instant of the last seq. Each commit can change it: lists without objects may follow.
type ending struct {
	id    instantID
	batch int64
	at    *instant
}

// get gives an instant before the last seq, nil if it is not kept.
func (i *instants) get(id instantID) *instant {
	known, ok := i.kept.Get(id)
	if !ok {
		return nil
	}
	return known.(*instant)
}

func (i *instants) add(id instantID, at *instant) { i.kept.Add(id, at) }

// atEnd gives the instant of the last seq as it was at a commit, nil if it is not kept.
func (i *instants) atEnd(id instantID, batch int64) *instant {
	last := i.last.Load()
	if last == nil || last.id != id || last.batch != batch {
		return nil
	}
	return last.at
}

// end keeps the instant of the last seq, as it is at a commit.
func (i *instants) end(id instantID, batch int64, at *instant) {
	i.last.Store(&ending{id: id, batch: batch, at: at})
}
