package troubles

import (
	"slices"
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
	// mostKept is up to how many objects in trouble a snapshot is kept. Each takes less than a kilobyte.
	mostKept = 5_000
	// derivedFrom is up to how many deltas a snapshot is made out of an earlier one, instead of out of a checkpoint.
	derivedFrom = 10_000
)

// Kept holds the last snapshots of a record: the next answers are derived from them. It may be used by several goroutines at once.
type Kept struct {
	mu   sync.Mutex  // protects what follows
	kept []*snapshot // the last made first
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

// keep keeps a snapshot in place of the one that it was derived from, and of those of an earlier revision.
func (k *Kept) keep(s, from *snapshot) {
	if len(s.items) > mostKept {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	others := slices.DeleteFunc(k.kept, func(other *snapshot) bool {
		return other == from || other.seq == s.seq || other.revision != s.revision
	})
	k.kept = append([]*snapshot{s}, others[:min(len(others), mostSnapshots-1)]...)
}
