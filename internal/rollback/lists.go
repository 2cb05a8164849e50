package rollback

import (
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
)

// listing is the list of a stream that is under way, or was last. Streams.mu protects it.
type listing struct {
	open  bool      // it has not come to its end
	left  bool      // the stream had left its history when it began
	anew  bool      // it is one after a history that is no more
	began time.Time // when it did, by the clock of the record
}

// Listing notes that a list begins: what lives is what it shows.
func (c *Stream) Listing(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	reversed := cause == delta.CauseHistoryReversed
	c.living = nil
	c.listing = listing{open: true, left: c.history.reversed, anew: c.history.reversed || reversed, began: c.all.now()}
	if !reversed {
		return
	}
	if !c.history.reversed {
		c.history.number++ // It is the list that shows it.
		c.etcd.base = 0
	}
	c.all.forgetLocked(c)
}

// Shown notes what a page of a list holds.
func (c *Stream) Shown(page []any) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living.show(page)
}

// Listed notes that the list of a resource version is complete. If the stream has left its history meanwhile, it has to be
// listed again. The newest version that it shows is looked at as if it was served now.
func (c *Stream) Listed(resourceVersion string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.listing.open = false
	if c.history.reversed && !c.listing.left {
		return
	}
	if c.history.reversed || c.listing.anew {
		c.all.parted = c.all.now()
	}
	c.history.reversed, c.history.gap, c.history.earlier = false, deltafifo.Begin{}, nil
	c.trust.listedLocked(c.listing.anew)
	c.place.listed(c.listing.began, c.listing.anew)
	if revision, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil {
		s := &sample{footprint: footprintLocked(c, c.living.newest(), time.Now()), listed: revision}
		s.recorded = c.listing.began // What the list holds is not newer.
		c.sampled.keepLocked(s)
		c.etcd.listedLocked(s)
	}
}
