package rollback

import (
	"context"
	"errors"
	"slices"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// askedBeside bounds how many streams of an etcd are asked whether another is in it. Some of their resources may be gone,
// but not all at once.
const askedPerEtcd = 5

// errNotAnnounced is why a stream waits for others.
var errNotAllAdded = errors.New("a recorder before this one has seen the history of others go backwards, and these are not followed yet")

// earlier is a rollback that was found before a stream was opened, by this process or by one before it.
type pastRollback struct {
	proof  string
	finder *Stream           // a stream in that etcd; nil if it was found by a recorder before this one
	record postgres.Reversal // what that has put on record
}

// untold are the earlier rollbacks of which it is not known yet whether they were of a stream's etcd. One may be there several
// times: for each stream that has it on record.
type unmatchedRollbacks []pastRollback

// first gives a rollback, as it began first, and the numbers of the streams that have it on record.
func (u unmatchedRollbacks) first() (found pastRollback, recorded map[int32]bool) {
	found, recorded = u[0], map[int32]bool{}
	for _, e := range u {
		if e.proof != found.proof {
			continue
		}
		recorded[e.record.Stream] = true
		if at := e.record.FromAt; !at.IsZero() && (found.record.FromAt.IsZero() || at.Before(found.record.FromAt)) {
			found = e
		}
	}
	return found, recorded
}

// without are those that are another rollback than the proof says.
func (u unmatchedRollbacks) without(proof string) unmatchedRollbacks {
	return slices.DeleteFunc(u, func(e pastRollback) bool { return e.proof == proof })
}

// learnOfEarlier makes the stream leave its history if an earlier rollback may have been of its etcd.
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

// nextEarlier gives an earlier rollback, and some of the streams in that etcd for which the server can be asked.
func nextUnmatched(c *Stream) (found pastRollback, others []*Stream, more bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if len(c.history.unmatched) == 0 {
		return found, nil, false
	}
	found, recorded := c.history.unmatched.first()
	for _, o := range c.all.streams {
		in := found.finder == nil && recorded[o.record] || found.finder != nil && o.etcd == found.finder.etcd
		if in && o != c && o.following.canAsk() && len(others) < askedPerEtcd {
			others = append(others, o)
		}
	}
	return found, others, true
}

// leaveLate makes the stream leave its history, with a gap of its own.
func rollBackLate(c *Stream, found pastRollback) {
	c.all.mu.Lock()
	c.history.gap = c.progress.completeLocked(c.etcd, &evidence{}, nil)
	if at := found.record.FromAt; !at.IsZero() {
		c.history.gap = deltafifo.Begin{ResourceVersion: found.record.FromRV, Time: at}
	}
	check := newCacheCheckLocked(c, &fork{})
	if check == nil && found.finder == nil {
		check = recalledCacheCheck(c.progress.newestKnown()) // That recorder is no more.
	}
	c.rollBackLocked(found.proof, check)
	c.all.mu.Unlock()
	notify(c, found.proof)
}

// allAnnounced reports whether each resource that is served was met by this process.
func (r *Streams) allStreamsAdded() bool {
	r.mu.Lock()
	allAdded := r.allAdded
	r.mu.Unlock()
	select {
	case <-allAdded:
		return true
	default:
		return false
	}
}

// provesLocked reports whether what the stream was served can show that a history is no more. It cannot before it is known
// whether that was an earlier rollback. Streams that were listed since would find it a second time, too.
func (c *Stream) canProveLocked() bool { return c.following.canAsk() && c.history.certain() }
