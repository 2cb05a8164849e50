package postgres

import (
	"github.com/kuberewind/kuberewind/delta"
)

// recorded reports whether the record already holds the version (I7). A watch that is resumed, or overlaps another,
// repeats versions. The queue compares lists, because it knows its waiting entries.
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
	case st.ended.covers(v.uid, v.rv):
		return true
	}
	// Several deletes may share the resource version at which the watch is resumed.
	return v.kind == delta.NumberDeleted && v.rv != "" && !delta.Passes(v.rv, st.work.at.Newest)
}

func fromList(source delta.Source) bool {
	return source == delta.SourceList || source == delta.SourceRelist || source == delta.SourceSchema
}

// maxEnded is how many ended lives a stream remembers. Two watches that overlap for a moment repeat fewer. The stream
// need not remember lives that ended before the recorder started, because its watch resumes after them.
const maxEnded = 4096

// endedLives remembers the last lives that ended. So a repeated part of a watch does not begin them again.
type endedLives struct {
	ended map[[16]byte]uint64 // UID to the resource version of the end, 0 if that is not a number
	order [][16]byte          // a ring
	next  int
}

func (t *endedLives) add(uid, rv string) {
	packedUID, ok := packUID(uid)
	if !ok {
		return
	}
	if t.ended == nil {
		t.ended = make(map[[16]byte]uint64)
	}
	if len(t.order) < maxEnded {
		t.order = append(t.order, packedUID)
	} else {
		delete(t.ended, t.order[t.next])
		t.order[t.next] = packedUID
		t.next = (t.next + 1) % maxEnded
	}
	t.ended[packedUID], _ = packRV(rv)
}

// covers reports whether the version belongs to a life that ended. A UID returns (I5) only if etcd is restored. In that
// case a list precedes the stream's events, and resource versions can be compared.
func (t *endedLives) covers(uid, rv string) bool {
	packedUID, ok := packUID(uid)
	if !ok {
		return false
	}
	end, ended := t.ended[packedUID]
	packedRV, number := packRV(rv)
	return ended && (end == 0 || !number || packedRV <= end)
}
