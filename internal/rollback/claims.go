package rollback

import (
	"slices"
)

// keptRevisions bounds the revisions that one stream keeps: its newest, in 4 MiB at most. A recovery can only
// succeed if the position is at most a few minutes old.
const keptRevisions = 1 << 19

// claims are the revisions of a stream. Streams.mu protects them.
type claims struct {
	count  uint64   // how many versions were served or recalled since the last rollback
	newest []uint64 // the newest of them, in order
}

// add notes a revision.
func (c *claims) add(revision uint64) {
	c.count++
	at := len(c.newest)
	if at > 0 && revision <= c.newest[at-1] {
		var known bool
		if at, known = slices.BinarySearch(c.newest, revision); known {
			return
		}
	}
	c.newest = slices.Insert(c.newest, at, revision)
	if len(c.newest) > keptRevisions {
		c.newest = slices.Clone(c.newest[keptRevisions/2:])
	}
}

// within returns the revisions after from, up to and including to. If to comes before from, there are none.
func (c *claims) within(from, to uint64) []uint64 {
	if to <= from {
		return nil
	}
	first, _ := slices.BinarySearch(c.newest, from+1)
	last, _ := slices.BinarySearch(c.newest, to+1)
	return c.newest[first:last]
}
