package recorder

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// probeEvery is how often each etcd is asked whether its history is the one on record: it costs one read of one key.
	probeEvery = 10 * time.Second
	// tiesPerRound bounds how many streams are assigned to their etcd in one round, by two such reads each.
	tiesPerRound = 20
)

// followHistory looks now and then whether the history of each etcd is the one on record, until ctx ends. The error is that the cluster
// is another.
func (r *Recorder) followHistory(ctx context.Context) error {
	for {
		timer := time.NewTimer(probeEvery + rand.N(probeEvery/5))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case err := <-r.revisions.identity.foreign:
			timer.Stop()
			return err
		case <-timer.C:
		}
		if err := r.revisions.probe(ctx); err != nil && ctx.Err() == nil {
			r.log.Debug("it was not found out whether the server's history is still the one on record", "error", err)
		}
	}
}

// probe asks each etcd about what is newest of it, and about some of what was served since the last probe.
func (r *revisions) probe(ctx context.Context) error {
	if err := r.identity.check(ctx); err != nil {
		return err
	}
	failed := errors.Join(r.tell(ctx), r.tie(ctx), r.lookBack(ctx))
	for _, c := range r.newestOfEach() {
		if _, err := c.verify(ctx, 0); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// tie finds out which streams are kept in one etcd, a few at a time. Those for which the server did not answer have their turn again after all others.
func (r *revisions) tie(ctx context.Context) error {
	var failed error
	silent := map[*claims]bool{}
	for range tiesPerRound {
		c, heads := r.untied(r.tried)
		if c == nil {
			clear(r.tried)
			break
		}
		r.tried[c] = true
		if err := c.tieTo(ctx, heads, silent); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// tieTo finds the etcd of the stream among those of others; if it is none of them, it is one of its own. Nobody waits for another one that does not answer:
// that the two may be one is found out when it matters, and asking both costs little.
func (c *claims) tieTo(ctx context.Context, heads []*claims, silent map[*claims]bool) (failed error) {
	together := false
	for _, head := range heads {
		if silent[head] {
			continue
		}
		var err error
		if together, err = head.sameEtcd(ctx, c, (*claims).now); c.silences(err) {
			return err
		}
		if err != nil {
			silent[head], failed = true, errors.Join(failed, err)
		}
		if together {
			break
		}
	}
	if !together && len(silent) > 0 {
		if _, err := c.now(ctx); err != nil {
			return errors.Join(failed, err)
		}
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.tied = true
	return failed
}

// untied is a followed stream of which nobody has looked in which etcd it is, and one stream of each etcd.
func (r *revisions) untied(tried map[*claims]bool) (found *claims, heads []*claims) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[*claims]bool{}
	for _, c := range r.streams {
		head := c.headLocked()
		switch {
		case !c.asksLocked() || c.position == 0 || c.reversed:
		case head.tied && !known[head]:
			known[head] = true
			heads = append(heads, c)
		case !head.tied && c == head && found == nil && !tried[c]:
			found = c
		}
	}
	return found, heads
}

// newestOfEach is, of each etcd, the stream that has come furthest.
func (r *revisions) newestOfEach() []*claims {
	r.mu.Lock()
	defer r.mu.Unlock()
	furthest := map[*claims]*claims{}
	for _, c := range r.streams {
		head := c.headLocked()
		if !c.provesLocked() || c.position == 0 || !head.tied {
			continue
		}
		if best := furthest[head]; best == nil || c.position > best.position {
			furthest[head] = c
		}
	}
	found := make([]*claims, 0, len(furthest))
	for _, c := range furthest {
		found = append(found, c)
	}
	return found
}
