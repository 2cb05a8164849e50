package troubles

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/kuberewind/kuberewind/history"
)

// A snapshot is what is in trouble at a point of the record. It does not change once it is kept.
type snapshot struct {
	seq      int64 // the last delta that belongs to it
	first    int64 // the begin of a trouble was looked for from this delta on
	streams  []int32
	revision int64
	head     history.Head // of the record, when seq was in it
	items    map[int64]*Item
	named    map[int64]named // what came before each trouble that was shown
}

// A named is the change before a trouble, or why there is none. It holds while the trouble and the owners are the same.
type named struct {
	since   int64
	chain   []int64 // the object and its owners
	change  *Change
	unknown string
}

const (
	// mostSnapshots is how many snapshots of a record are kept: of the pages that follow it, and of one that looks back.
	mostSnapshots = 4
	// mostKept is the most objects of a snapshot that is kept. A snapshot of more objects is not kept. Each takes about a kilobyte.
	mostKept = 5_000
	// mostText is the most bytes of a text that an item shows: a custom resource may give a reason of a megabyte.
	mostText = 256
	// derivedFrom is the most deltas between a snapshot and the one that it is derived from. If more deltas lie between, the list is rebuilt.
	derivedFrom = 10_000
)

// Kept holds the last snapshots of a record: the next answers are derived from them. It may be used by several goroutines at once.
type Kept struct {
	mu   sync.Mutex  // protects what follows
	kept []*snapshot // the highest seq first
}

// before gives the newest snapshot from which another one can be derived, nil if there is none. Both have the same streams and the same revision of the
// record, so nothing is in it that was dropped or erased since.
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

// keep keeps a snapshot in place of the one that it was derived from, and of those of another revision. It drops the lowest seq if there are too many: pages
// that follow the record derive from the highest.
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

// short cuts a text that is too long to be kept.
func short(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText-len("…")], "") + "…"
}
