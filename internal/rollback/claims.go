package rollback

import (
	"slices"
)

// keptRevisions bounds how many revisions are kept of one stream: its newest, in 4 MiB at most. A position is no older than a few
// minutes where recovery has a chance.
const keptRevisions = 1 << 19

// claims are the revisions that were of a stream. Streams.mu protects them.
type claims struct {
	count  uint64   // how many there were
	newest []uint64 // the newest of these, in order
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

// within are the revisions after from, up to to: none where that comes before it.
func (c *claims) within(from, to uint64) []uint64 {
	if to <= from {
		return nil
	}
	first, _ := slices.BinarySearch(c.newest, from+1)
	last, _ := slices.BinarySearch(c.newest, to+1)
	return c.newest[first:last]
}
