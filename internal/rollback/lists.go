package rollback

import (
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
)

// listing is the stream's current list, or its last one. Streams.mu protects it.
type listing struct {
	open          bool      // it is not complete yet
	rolledBack    bool      // the stream was rolled back when the list began
	afterRollback bool      // the list comes after a rollback
	beganAt       time.Time // when it began, by the record's clock
}

// Listing notes that a list begins. From then on, the list says which objects live. If the list comes after a rollback,
// the stream forgets its old history.
func (c *Stream) Listing(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	causedByRollback := cause == delta.CauseHistoryReversed
	c.living = nil
	c.listing = listing{open: true, rolledBack: c.history.rolledBack, afterRollback: c.history.rolledBack || causedByRollback, beganAt: c.all.now()}
	if !causedByRollback {
		return
	}
	if c.history.rolledBack {
		c.forgetLocked() // Others may be listed already, and have claims in the new history.
		return
	}
	c.history.number++ // The list itself shows the rollback.
	c.etcd.commonListRevision = 0
	c.all.dropClaimsLocked()
	c.forgetLocked()
}

// Shown notes the objects of a page of a list.
func (c *Stream) Shown(page []any) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.living.addPage(page)
}

// Listed notes that the list of a resource version is complete. If the stream was rolled back while it was listed,
// the list does not count, and the stream has to be listed again. The newest listed version becomes a sample, as if
// it was served now.
func (c *Stream) Listed(resourceVersion string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.listing.open = false
	if c.history.rolledBack && !c.listing.rolledBack {
		return
	}
	if c.history.rolledBack || c.listing.afterRollback {
		c.all.gapsQueuedAt = c.all.now()
	}
	c.history.rolledBack, c.history.gap, c.history.unmatched = false, deltafifo.Begin{}, nil
	c.trust.listedLocked(c.listing.afterRollback)
	c.progress.listed(c.listing.beganAt, c.listing.afterRollback)
	if revision, err := strconv.ParseUint(resourceVersion, 10, 64); err == nil {
		s := &sample{observation: observationLocked(c, c.living.newest(), time.Now()), listedRevision: revision}
		s.recordTime = c.listing.beganAt // The listed versions are not newer.
		c.samples.addPendingLocked(s)
		c.etcd.listedLocked(s)
	}
}
