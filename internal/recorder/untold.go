package recorder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// errNotAnnounced is why a stream waits for others.
var errNotAnnounced = errors.New("a recorder before this one has seen the history of others go backwards, and these are not followed yet")

// recallUntold takes over what the record has of reversals that the stream may not have been told of.
func (c *claims) recallUntold(record int32, untold []postgres.Reversal) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.record, c.untold = record, untold
}

// learnOfRecord makes the stream leave its history if an earlier recorder has found it to be no more, and ended before it told
// the stream.
func (c *claims) learnOfRecord(ctx context.Context) (proof string, err error) {
	for {
		found, others, more := c.nextUntold()
		if !more {
			return "", nil
		}
		if len(others) == 0 && !c.all.allAnnounced() {
			return "", errNotAnnounced
		}
		// Where nobody is left who could be asked, it may have been this etcd.
		together := len(others) == 0
		if !together {
			together, err = c.besideAnyOf(ctx, others)
			switch {
			case err == nil, c.silences(err):
			case time.Since(c.all.began) >= finderPatience:
				_, err = c.trueNow(ctx)
				together = err == nil
			default:
				err = fmt.Errorf("ask where those are whose history went backwards: %v", err) //nolint:errorlint // as in found
			}
			if err != nil {
				return "", err
			}
		}
		if together {
			c.leave(witness{}, reversal{proof: found.Proof, parted: &parted{last: c.recordedFootprint(found)}}, math.MaxInt)
			return found.Proof, nil
		}
		c.all.mu.Lock()
		c.untold = slices.DeleteFunc(c.untold, func(r postgres.Reversal) bool { return r.Proof == found.Proof })
		c.all.mu.Unlock()
	}
}

// hadLeft notes that an earlier recorder has found the recalled history to be no more, and ended before the stream was listed.
// The reversal is known. Streams that were listed since would find it a second time. What that recorder has spooled of the
// stream may go further than what is on record.
func (c *claims) hadLeft(spooled string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if revision, err := strconv.ParseUint(spooled, 10, 64); err == nil {
		c.position = max(c.position, revision)
	}
	c.reversed, c.proof, c.doubt = true, "it had gone backwards before", c.doubtOfRecordLocked()
	c.claimed, c.newest, c.position, c.living, c.due = 0, nil, 0, nil, samples{}
}

// recordedFootprint is where, on record, the history that is no more was served last. It is zero if that cannot be compared.
func (c *claims) recordedFootprint(r postgres.Reversal) (f footprint) {
	if revision, err := strconv.ParseUint(r.FromRV, 10, 64); err == nil && !r.FromAt.IsZero() {
		f = footprint{of: c, witness: witness{revision: revision}, recorded: r.FromAt}
	}
	return f
}

// nextUntold gives a reversal on record, as it began first. It also gives some of the streams for which it was found and for
// which the server can be asked.
func (c *claims) nextUntold() (found postgres.Reversal, others []*claims, more bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if len(c.untold) == 0 {
		return found, nil, false
	}
	found = c.untold[0]
	for _, r := range c.untold {
		if r.Proof != found.Proof {
			continue
		}
		if !r.FromAt.IsZero() && (found.FromAt.IsZero() || r.FromAt.Before(found.FromAt)) {
			found = r
		}
		for _, o := range c.all.streams {
			if o.record == r.Stream && o.asksLocked() && len(others) < askedBeside {
				others = append(others, o)
			}
		}
	}
	return found, others, true
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

// provesLocked reports whether what the stream was served can show that a history is no more. It cannot before it is known
// whether that was a reversal on record. Streams that were listed since would find it a second time, too.
func (c *claims) provesLocked() bool { return c.asksLocked() && !c.reversed && len(c.untold) == 0 }
