package troubles

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/kuberewind/kuberewind/history"
)

// A snapshot lists the objects in trouble at a point of the record. A kept snapshot does not change.
type snapshot struct {
	seq      int64 // the last delta that belongs to it
	first    int64 // the search for the beginnings of troubles began at this delta
	streams  []int32
	revision int64
	head     history.Head // head of the record when the snapshot was made
	items    map[int64]*Item
	named    map[int64]named // the change before each listed trouble
}

// A named is the change before a trouble, or the reason why there is none. It holds while the trouble and the owners stay
// the same.
type named struct {
	since   int64
	chain   []int64 // the object and its owners
	change  *Change
	unknown string
}

const (
	// mostSnapshots is the number of kept snapshots of a record: for the pages that follow it, and for a page that looks
	// back.
	mostSnapshots = 4
	// mostKept is the largest number of objects in a kept snapshot. Each takes about a kilobyte.
	mostKept = 5_000
	// mostText is the largest size of an item's text in bytes. A custom resource may give a reason of a megabyte.
	mostText = 256
	// derivedFrom is the largest number of deltas between a snapshot and the one that it is derived from. If there are
	// more, the list is rebuilt.
	derivedFrom = 10_000
)

// Kept holds the last snapshots of a record, from which the next answers are derived. Several goroutines may use it at
// once.
type Kept struct {
	mu   sync.Mutex  // protects what follows
	kept []*snapshot // the highest seq first
}

// before returns the newest snapshot from which another one can be derived, or nil. Both have the same streams and the same
// revision of the record. So the snapshot holds nothing that was dropped or erased since.
func (k *Kept) before(next *snapshot) (newest *snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.kept {
		near := s.seq <= next.seq && next.seq-s.seq <= derivedFrom && s.first <= next.first
		if near && s.revision == next.revision && slices.Equal(s.streams, next.streams) && (newest == nil || s.seq > newest.seq) {
			newest = s
		}
	}
	return newest
}

// keep stores a snapshot. It replaces the snapshot from which it was derived, and those of another revision. If there are
// too many, it drops the lowest seq: pages that follow the record derive from the highest.
func (k *Kept) keep(s, from *snapshot) {
	if len(s.items) > mostKept {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	others := slices.DeleteFunc(k.kept, func(other *snapshot) bool {
		return other == from || other.seq == s.seq || other.revision != s.revision
	})
	all := append([]*snapshot{s}, others...)
	slices.SortFunc(all, func(x, y *snapshot) int { return cmp.Compare(y.seq, x.seq) })
	k.kept = all[:min(len(all), mostSnapshots)]
}

// short cuts a text that is too long to keep.
func short(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText-len("…")], "") + "…"
}
