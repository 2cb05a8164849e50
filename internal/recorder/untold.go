package recorder

import (
	"context"
	"errors"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// errNotAnnounced is why a stream waits for others.
var errNotAnnounced = errors.New("a recorder before this one has seen the history of others go backwards, and these are not followed yet")

// recallUntold takes over what the record has of reversals that the stream may not have been told of.
func (c *claims) recallUntold(record int32, untold []postgres.Reversal) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.record = record
	for _, r := range untold {
		if c.untold == nil {
			c.untold = map[string][]int32{}
		}
		c.untold[r.Proof] = append(c.untold[r.Proof], r.Stream)
	}
}

// learnOfRecord has the stream leave its history if a recorder before this one has found it to be no more, and ended before the stream was told.
func (c *claims) learnOfRecord(ctx context.Context) (proof string, err error) {
	for {
		proof, others, more := c.nextUntold()
		if !more {
			return "", nil
		}
		if len(others) == 0 && !c.all.allAnnounced() {
			return "", errNotAnnounced
		}
		together, err := c.besideAnyOf(ctx, others)
		if err != nil {
			return "", err
		}
		if together {
			c.leave(witness{}, reversal{finder: others[0], proof: proof, parted: &parted{known: true}})
			return proof, nil
		}
		c.all.mu.Lock()
		delete(c.untold, proof)
		c.all.mu.Unlock()
	}
}

// nextUntold is a reversal on record, and some of the streams that it was found for which the server can be asked for.
func (c *claims) nextUntold() (proof string, others []*claims, more bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for proof, streams := range c.untold {
		for _, o := range c.all.streams {
			for _, record := range streams {
				if o.record == record && o.asksLocked() && len(others) < askedBeside {
					others = append(others, o)
				}
			}
		}
		return proof, others, true
	}
	return "", nil, false
}

// allAnnounced reports whether each resource that is served was met by this process.
func (r *revisions) allAnnounced() bool {
	select {
	case <-r.announced:
		return true
	default:
		return false
	}
}
