package postgres

import (
	"github.com/kuberewind/kuberewind/delta"
)

// recorded reports whether the version is in the record already (I7). A watch that is resumed, or overlaps another, gives
// versions again. Lists are compared by the queue, which knows what waits in it.
func (st *Stream) recorded(v *version) bool {
	same := v.known != nil && v.known.isUID(v.uid)
	if v.item.Source != delta.SourceWatch {
		return same && v.kind != delta.NumberDeleted && fromList(v.item.Source) && v.rv == v.known.rvText() && v.digest == v.known.digest
	}
	switch {
	case same && v.kind == delta.NumberDeleted:
		return false
	case same && v.rv == "":
		return v.digest == v.known.digest
	case same:
		return !delta.Passes(v.rv, v.known.rvText())
	case st.buried.covers(v.uid, v.rv):
		return true
	}
	// Several deletes may share the resource version at which the watch is resumed.
	return v.kind == delta.NumberDeleted && v.rv != "" && !delta.Passes(v.rv, st.work.at.Newest)
}

func fromList(source delta.Source) bool {
	return source == delta.SourceList || source == delta.SourceRelist || source == delta.SourceSchema
}

// maxBuried is how many ended lives a stream remembers: more than a watch gives again when two overlap for a moment. Lives
// that ended before the recorder started need not be remembered, since a watch is resumed after them.
const maxBuried = 4096

// buried remembers the last lives that ended, so that a stretch of a watch that is given again does not begin them anew.
type buried struct {
	ended map[[16]byte]uint64 // UID to the resource version of the end, 0 if that is not a number
	order [][16]byte          // a ring
	next  int
}

func (t *buried) add(uid, rv string) {
	packedUID, ok := packUID(uid)
	if !ok {
		return
	}
	if t.ended == nil {
		t.ended = make(map[[16]byte]uint64)
	}
	if len(t.order) < maxBuried {
		t.order = append(t.order, packedUID)
	} else {
		delete(t.ended, t.order[t.next])
		t.order[t.next] = packedUID
		t.next = (t.next + 1) % maxBuried
	}
	t.ended[packedUID], _ = packRV(rv)
}

// covers reports whether the version belongs to a life that ended. A UID comes back (I5) only if etcd is restored. Then a list
// comes before what is served, and resource versions can be compared.
func (t *buried) covers(uid, rv string) bool {
	packedUID, ok := packUID(uid)
	if !ok {
		return false
	}
	end, ended := t.ended[packedUID]
	packedRV, number := packRV(rv)
	return ended && (end == 0 || !number || packedRV <= end)
}
