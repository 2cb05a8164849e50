package rollback

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// askedBeside bounds how many streams of an etcd are asked whether another is in it. Some of their resources may be gone,
// but not all at once.
const askedBeside = 5

// askedAtOnce bounds how many etcds are asked at once whether a stream is in them, by three reads each.
const askedAtOnce = 20

// errNotAnnounced is why a stream waits for others.
var errNotAnnounced = errors.New("a recorder before this one has seen the history of others go backwards, and these are not followed yet")

// earlier is a rollback that was found before a stream was opened, by this process or by one before it.
type earlier struct {
	proof  string
	finder *Stream           // a stream in that etcd; nil if it was found by a recorder before this one
	record postgres.Reversal // what that has put on record
}

// RecallEarlier takes over what the record has of rollbacks that the stream may not have been told of.
func (c *Stream) RecallEarlier(record int32, untold []postgres.Reversal) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.record = record
	for _, r := range untold {
		c.earlier = append(c.earlier, earlier{proof: r.Proof, record: r})
	}
}

// learnOfEarlier makes the stream leave its history if an earlier rollback may have been of its etcd.
func (c *Stream) learnOfEarlier(ctx context.Context) (proof string, err error) {
	for {
		found, others, more := c.nextEarlier()
		if !more {
			return "", nil
		}
		if len(others) == 0 && !c.all.allAnnounced() {
			return "", errNotAnnounced
		}
		elsewhere, err := c.apartFrom(ctx, others)
		if err != nil {
			return "", err
		}
		if !elsewhere {
			c.leaveLate(found)
			return found.proof, nil
		}
		c.all.mu.Lock()
		c.earlier = slices.DeleteFunc(c.earlier, func(e earlier) bool { return e.proof == found.proof })
		c.all.mu.Unlock()
	}
}

// leaveLate makes the stream leave its history, with a gap of its own.
func (c *Stream) leaveLate(found earlier) {
	c.all.mu.Lock()
	c.until = c.completeLocked(&evidence{}, nil)
	if at := found.record.FromAt; !at.IsZero() {
		c.until = deltafifo.Until{ResourceVersion: found.record.FromRV, Time: at}
	}
	d := c.doubtLocked(&fork{})
	if d == nil && found.finder == nil {
		d = doubtOfRecord(max(c.position, c.recorded)) // That recorder is no more.
	}
	c.leaveLocked(found.proof, d)
	c.all.mu.Unlock()
	c.tell(found.proof)
}

// nextEarlier gives an earlier rollback, as it began first. It also gives some of the streams in that etcd for which the server
// can be asked.
func (c *Stream) nextEarlier() (found earlier, others []*Stream, more bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if len(c.earlier) == 0 {
		return found, nil, false
	}
	found = c.earlier[0]
	ids := map[int32]bool{}
	for _, e := range c.earlier {
		if e.proof != found.proof {
			continue
		}
		ids[e.record.Stream] = true
		if at := e.record.FromAt; !at.IsZero() && (found.record.FromAt.IsZero() || at.Before(found.record.FromAt)) {
			found = e
		}
	}
	for _, o := range c.all.streams {
		in := found.finder == nil && ids[o.record] || found.finder != nil && o.etcd == found.finder.etcd
		if in && o != c && o.asksLocked() && len(others) < askedBeside {
			others = append(others, o)
		}
	}
	return found, others, true
}

// apartFrom reports whether the stream is proved to be in another etcd than others are. The first of them for which the server
// answers decides. The error is that it does not answer for the stream itself.
func (c *Stream) apartFrom(ctx context.Context, others []*Stream) (bool, error) {
	for _, o := range others {
		together, err := o.sameEtcd(ctx, c, (*asker).trueNow)
		if err == nil {
			return !together, nil
		}
		if c.silences(err) {
			return false, err
		}
	}
	_, err := c.ask.trueNow(ctx)
	return false, err
}

// apart finds out which of some etcds are proved to be others than that of the stream. Each has a stream that is asked.
func apart(ctx context.Context, c *Stream, asked map[*etcd]*Stream) map[*etcd]bool {
	var mu sync.Mutex
	found := map[*etcd]bool{}
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for etcd, o := range asked {
		asking.Go(func() error {
			together, err := c.sameEtcd(ctx, o, (*asker).trueNow)
			mu.Lock()
			defer mu.Unlock()
			found[etcd] = err == nil && !together
			return nil
		})
	}
	_ = asking.Wait()
	return found
}

// HadLeft notes that an earlier recorder has found the recalled history to be no more, and ended before the stream was listed.
// The rollback is known. Streams that were listed since would find it a second time. What that recorder has spooled of the
// stream may go further than what is on record.
func (c *Stream) HadLeft(spooled string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if revision, err := strconv.ParseUint(spooled, 10, 64); err == nil {
		c.position = max(c.position, revision)
	}
	c.reversed, c.proof, c.trust.doubt = true, "it had gone backwards before", doubtOfRecord(max(c.position, c.recorded))
	c.claimed, c.newest, c.position, c.living, c.earlier = 0, nil, 0, nil, nil
	c.fresh, c.due, c.paused = samples{}, samples{}, samples{}
}

// allAnnounced reports whether each resource that is served was met by this process.
func (r *Streams) allAnnounced() bool {
	select {
	case <-r.announced:
		return true
	default:
		return false
	}
}

// provesLocked reports whether what the stream was served can show that a history is no more. It cannot before it is known
// whether that was an earlier rollback. Streams that were listed since would find it a second time, too.
func (c *Stream) provesLocked() bool { return c.asksLocked() && !c.reversed && len(c.earlier) == 0 }
