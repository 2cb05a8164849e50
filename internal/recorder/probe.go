package recorder

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// probeEvery is how often each etcd is asked whether its history is the one on record: it costs one read of one key.
	probeEvery = 10 * time.Second
	// tiesPerRound bounds how many streams are assigned to their etcd in one round, by three small lists each.
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
	failed := errors.Join(r.tell(ctx), r.tie(ctx))
	for _, c := range r.newestOfEach() {
		if _, err := c.verify(ctx, 0); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return errors.Join(failed, r.lookBack(ctx))
}

// tie finds out which streams are kept in one etcd, a few at a time. Those for which the server did not answer have their turn again after all others.
func (r *revisions) tie(ctx context.Context) error {
	untied := r.untied()
	if len(untied) == 0 {
		clear(r.tried)
		return nil
	}
	silent, failed := askAll(ctx, slices.Concat(untied, r.heads()))
	for _, c := range untied {
		r.tried[c] = true
		if !silent[c] {
			failed = errors.Join(failed, c.tieTo(ctx, silent))
		}
	}
	return failed
}

// askAll finds out for which streams the server does not answer now, all at once: it may hang for many.
func askAll(ctx context.Context, streams []*claims) (silent map[*claims]bool, failed error) {
	errs := make([]error, len(streams))
	var asking sync.WaitGroup
	for i, c := range streams {
		asking.Go(func() { _, errs[i] = c.now(ctx) })
	}
	asking.Wait()
	silent = map[*claims]bool{}
	for i, c := range streams {
		silent[c] = errs[i] != nil
	}
	return silent, errors.Join(errs...)
}

// tieTo finds the etcd of the stream among those of others; if it is none of them, it is one of its own. Nobody waits for another one that does not answer:
// that the two may be one is found out when it matters, and asking both costs little.
func (c *claims) tieTo(ctx context.Context, silent map[*claims]bool) error {
	for _, head := range c.all.heads() {
		if silent[head] {
			continue
		}
		together, err := head.sameEtcd(ctx, c, (*claims).now)
		if err != nil {
			return err
		}
		if together {
			break
		}
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.headLocked().tied = true
	return nil
}

// untied are some followed streams of which nobody has looked in which etcd they are, one of those that were found to be together.
func (r *revisions) untied() (found []*claims) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[*claims]bool{}
	for _, c := range r.streams {
		if head := c.headLocked(); c.comparesLocked() && !head.tied && !known[head] && !r.tried[c] && len(found) < tiesPerRound {
			known[head] = true
			found = append(found, c)
		}
	}
	return found
}

// heads are one stream of each etcd.
func (r *revisions) heads() (found []*claims) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[*claims]bool{}
	for _, c := range r.streams {
		if head := c.headLocked(); c.comparesLocked() && head.tied && !known[head] {
			known[head] = true
			found = append(found, c)
		}
	}
	return found
}

// comparesLocked reports whether the present resource versions of the stream can be compared with those of others.
func (c *claims) comparesLocked() bool { return c.asksLocked() && c.position != 0 && !c.reversed }

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
