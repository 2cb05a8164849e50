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
const askedBeside = 5

// errNotAnnounced is why a stream waits for others.
var errNotAnnounced = errors.New("a recorder before this one has seen the history of others go backwards, and these are not followed yet")

// earlier is a rollback that was found before a stream was opened, by this process or by one before it.
type earlier struct {
	proof  string
	finder *Stream           // a stream in that etcd; nil if it was found by a recorder before this one
	record postgres.Reversal // what that has put on record
}

// untold are the earlier rollbacks of which it is not known yet whether they were of a stream's etcd. One may be there several
// times: for each stream that has it on record.
type untold []earlier

// first gives a rollback, as it began first, and the numbers of the streams that have it on record.
func (u untold) first() (found earlier, recorded map[int32]bool) {
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
func (u untold) without(proof string) untold {
	return slices.DeleteFunc(u, func(e earlier) bool { return e.proof == proof })
}

// learnOfEarlier makes the stream leave its history if an earlier rollback may have been of its etcd.
func learnOfEarlier(ctx context.Context, c *Stream) (proof string, err error) {
	for {
		found, others, more := nextEarlier(c)
		if !more {
			return "", nil
		}
		if len(others) == 0 && !c.all.allAnnounced() {
			return "", errNotAnnounced
		}
		elsewhere, err := apartFrom(ctx, c, others)
		if err != nil {
			return "", err
		}
		if !elsewhere {
			leaveLate(c, found)
			return found.proof, nil
		}
		c.all.mu.Lock()
		c.history.earlier = c.history.earlier.without(found.proof)
		c.all.mu.Unlock()
	}
}

// nextEarlier gives an earlier rollback, and some of the streams in that etcd for which the server can be asked.
func nextEarlier(c *Stream) (found earlier, others []*Stream, more bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if len(c.history.earlier) == 0 {
		return found, nil, false
	}
	found, recorded := c.history.earlier.first()
	for _, o := range c.all.streams {
		in := found.finder == nil && recorded[o.record] || found.finder != nil && o.etcd == found.finder.etcd
		if in && o != c && o.following.asks() && len(others) < askedBeside {
			others = append(others, o)
		}
	}
	return found, others, true
}

// leaveLate makes the stream leave its history, with a gap of its own.
func leaveLate(c *Stream, found earlier) {
	c.all.mu.Lock()
	c.history.gap = c.place.completeLocked(c.etcd, &evidence{}, nil)
	if at := found.record.FromAt; !at.IsZero() {
		c.history.gap = deltafifo.Begin{ResourceVersion: found.record.FromRV, Time: at}
	}
	d := doubtLocked(c, &fork{})
	if d == nil && found.finder == nil {
		d = doubtOfRecord(c.place.known()) // That recorder is no more.
	}
	c.leaveLocked(found.proof, d)
	c.all.mu.Unlock()
	tell(c, found.proof)
}

// allAnnounced reports whether each resource that is served was met by this process.
func (r *Streams) allAnnounced() bool {
	r.mu.Lock()
	announced := r.announced
	r.mu.Unlock()
	select {
	case <-announced:
		return true
	default:
		return false
	}
}

// provesLocked reports whether what the stream was served can show that a history is no more. It cannot before it is known
// whether that was an earlier rollback. Streams that were listed since would find it a second time, too.
func (c *Stream) provesLocked() bool { return c.following.asks() && c.history.certain() }
