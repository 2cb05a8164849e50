package rollback

import (
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
)

// listing is the list of a stream that is under way, or was last. Streams.mu protects it.
type listing struct {
	open          bool      // it has not come to its end
	rolledBack    bool      // the stream had left its history when it began
	afterRollback bool      // it is one after a history that is no more
	began         time.Time // when it did, by the clock of the record
}

// Listing notes that a list begins: what lives is what it shows.
func (c *Stream) Listing(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	historyReversed := cause == delta.CauseHistoryReversed
	c.living = nil
	c.listing = listing{open: true, rolledBack: c.history.rolledBack, afterRollback: c.history.rolledBack || historyReversed, began: c.all.now()}
	if !historyReversed {
		return
	}
	if !c.history.rolledBack {
		c.history.number++ // It is the list that shows it.
		c.etcd.commonList = 0
	}
	c.all.forgetLocked(c)
}

// Shown notes what a page of a list holds.
func (c *Stream) Shown(page []any) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living.addPage(page)
}

// Listed notes that the list of a resource version is complete. If the stream has left its history meanwhile, it has to be
// listed again. The newest version that it shows is looked at as if it was served now.
func (c *Stream) Listed(resourceVersion string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.listing.open = false
	if c.history.rolledBack && !c.listing.rolledBack {
		return
	}
	if c.history.rolledBack || c.listing.afterRollback {
		c.all.gapsQueued = c.all.now()
	}
	c.history.rolledBack, c.history.gap, c.history.unmatched = false, deltafifo.Begin{}, nil
	c.trust.listedLocked(c.listing.afterRollback)
	c.progress.listed(c.listing.began, c.listing.afterRollback)
	if revision, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil {
		s := &sample{observation: observationLocked(c, c.living.newest(), time.Now()), listed: revision}
		s.recordTime = c.listing.began // What the list holds is not newer.
		c.samples.addPendingLocked(s)
		c.etcd.listedLocked(s)
	}
}
