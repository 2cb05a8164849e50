package rollback

import (
	"context"
	"errors"
	"slices"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// askedPerEtcd bounds how many streams of an etcd are asked whether another stream is in it. Some of their
// resources may be gone, but not all at once.
const askedPerEtcd = 5

// errNotAllAdded says why a stream is not followed yet.
var errNotAllAdded = errors.New("a rollback was found, and no stream of that etcd can be asked yet; waiting until all streams are opened")

// pastRollback is a rollback that was found before a stream was opened, by this process or by an earlier one.
type pastRollback struct {
	proof    string
	finder   *Stream           // a stream in that etcd; nil if an earlier recorder found the rollback
	onRecord postgres.Reversal // the rollback as that recorder has recorded it
}

// unmatchedRollbacks are the past rollbacks for which it is not known yet whether they were of a stream's etcd. A
// rollback may be there several times: once for each stream that has it on record.
type unmatchedRollbacks []pastRollback

// first returns a rollback with its earliest begin, and the IDs of the streams that have it on record.
func (u unmatchedRollbacks) first() (found pastRollback, recordedBy map[int32]bool) {
	found, recordedBy = u[0], map[int32]bool{}
	for _, e := range u {
		if e.proof != found.proof {
			continue
		}
		recordedBy[e.onRecord.Stream] = true
		if at := e.onRecord.FromAt; !at.IsZero() && (found.onRecord.FromAt.IsZero() || at.Before(found.onRecord.FromAt)) {
			found = e
		}
	}
	return found, recordedBy
}

// without returns the rollbacks with another proof.
func (u unmatchedRollbacks) without(proof string) unmatchedRollbacks {
	return slices.DeleteFunc(u, func(e pastRollback) bool { return e.proof == proof })
}

// matchPastRollbacks rolls the stream back if a past rollback may have been of its etcd.
func matchPastRollbacks(ctx context.Context, c *Stream) (proof string, err error) {
	for {
		found, others, more := nextUnmatched(c)
		if !more {
			return "", nil
		}
		if len(others) == 0 && !c.all.allStreamsAdded() {
			return "", errNotAllAdded
		}
		elsewhere, err := inAnotherEtcd(ctx, c, others)
		if err != nil {
			return "", err
		}
		if !elsewhere {
			rollBackLate(c, found)
			return found.proof, nil
		}
		c.all.mu.Lock()
		c.history.unmatched = c.history.unmatched.without(found.proof)
		c.all.mu.Unlock()
	}
}

// nextUnmatched returns a past rollback, and some streams in that etcd about which the server can be asked.
func nextUnmatched(c *Stream) (found pastRollback, others []*Stream, more bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if len(c.history.unmatched) == 0 {
		return found, nil, false
	}
	found, recordedBy := c.history.unmatched.first()
	for _, o := range c.all.streams {
		in := found.finder == nil && recordedBy[o.id] || found.finder != nil && o.etcd == found.finder.etcd
		if in && o != c && o.following.canAsk() && len(others) < askedPerEtcd {
			others = append(others, o)
		}
	}
	return found, others, true
}

// rollBackLate rolls the stream back, with a gap of its own.
func rollBackLate(c *Stream, found pastRollback) {
	c.all.mu.Lock()
	c.history.gap = c.progress.completeLocked(c.etcd, &evidence{}, nil)
	if at := found.onRecord.FromAt; !at.IsZero() {
		c.history.gap = deltafifo.Begin{ResourceVersion: found.onRecord.FromRV, Time: at}
	}
	c.rollBackLocked(found.proof, newCacheCheckLocked(c, &fork{}))
	c.all.mu.Unlock()
	notifyReflector(c, found.proof)
}
