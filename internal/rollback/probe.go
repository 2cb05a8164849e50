package rollback

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// probeEvery is how often each etcd is asked whether its history is the one on record. It costs one read of one key.
	probeEvery = 10 * time.Second
	// tiesPerRound bounds how many streams are assigned to their etcd in one round, by two small lists each.
	tiesPerRound = 20
	// tieTimeout bounds how long a recovery is held up by others that are assigned with its stream.
	tieTimeout = 2 * time.Second
)

// Follow looks now and then whether the history of each etcd is the one on record, until ctx ends.
func (r *Streams) Follow(ctx context.Context, log *slog.Logger) {
	for {
		timer := time.NewTimer(probeEvery + rand.N(probeEvery/5))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := r.Probe(ctx); err != nil && ctx.Err() == nil {
			log.Debug("it was not found out whether the server's history is still the one on record", "error", err)
		}
	}
}

// Probe asks each etcd about what is newest of it, and about some of what was served since the last probe.
func (r *Streams) Probe(ctx context.Context) error {
	if err := r.identity.Check(ctx); err != nil {
		return err
	}
	failed := r.tie(ctx)
	for _, c := range r.newestOfEach() {
		failed = errors.Join(failed, c.verify(ctx, 0))
	}
	return errors.Join(failed, r.lookBack(ctx))
}

// tie finds out which streams are kept in one etcd, a few at a time. Those for which the server did not answer have their turn again after all others.
func (r *Streams) tie(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r.tying <- struct{}{}:
	}
	defer func() { <-r.tying }()
	return r.tieSome(ctx, r.untied(nil))
}

// tieFirst ties the stream, and some others with it. Otherwise, when a server returns, each stream would ask for itself about
// each other one. The error is that ctx has ended. If the server does not answer for the stream, whatever asks about it finds
// that out.
func (c *Stream) tieFirst(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, tieTimeout)
	defer cancel()
	select {
	case <-bounded.Done():
		return ctx.Err()
	case c.all.tying <- struct{}{}:
	}
	defer func() { <-c.all.tying }()
	if untied := c.all.untied(c); slices.Contains(untied, c) {
		_ = c.all.tieSome(bounded, untied) // What failed is asked again, by the prober or by who needs it.
	}
	return ctx.Err()
}

// tieSome ties streams to one etcd or another. Those for which the server answers are listed between two lists of each etcd that is known (I4).
func (r *Streams) tieSome(ctx context.Context, untied []*Stream) error {
	if len(untied) == 0 {
		clear(r.tried)
		return nil
	}
	heads := r.heads()
	before, failed := nowOf(ctx, slices.Concat(untied, heads))
	answers := func(c *Stream) bool { _, answered := before[c]; return answered }
	answering := slices.DeleteFunc(slices.Clone(untied), func(c *Stream) bool { return !answers(c) })
	heads = slices.DeleteFunc(heads, func(h *Stream) bool { return !answers(h) })
	if len(heads) == 0 && len(answering) > 0 {
		heads = []*Stream{answering[0]}
	}
	at, failedThen := nowOf(ctx, answering)
	after, failedLast := nowOf(ctx, heads)
	failed = errors.Join(failed, failedThen, failedLast)
	for _, c := range untied {
		r.tried[c] = true
		beside := slices.IndexFunc(heads, func(h *Stream) bool {
			return before[h] != 0 && before[h] <= at[c] && at[c] <= after[h]
		})
		switch {
		case !answers(c), ctx.Err() != nil:
		case beside >= 0:
			heads[beside].join(c)
			c.isTied()
		default:
			failed = errors.Join(failed, c.tieTo(ctx, answers))
		}
	}
	return failed
}

// nowOf finds out where streams are, all at once: the server may hang for many. It gives those for which the server answers.
func nowOf(ctx context.Context, streams []*Stream) (at map[*Stream]uint64, failed error) {
	found, errs := make([]uint64, len(streams)), make([]error, len(streams))
	var asking sync.WaitGroup
	for i, c := range streams {
		asking.Go(func() { found[i], errs[i] = c.ask.now(ctx) })
	}
	asking.Wait()
	at = map[*Stream]uint64{}
	for i, c := range streams {
		if errs[i] == nil {
			at[c] = found[i]
		}
	}
	return at, errors.Join(errs...)
}

// askAll finds out for which streams the server does not answer now.
func askAll(ctx context.Context, streams []*Stream) (silent map[*Stream]bool, failed error) {
	at, failed := nowOf(ctx, streams)
	silent = map[*Stream]bool{}
	for _, c := range streams {
		_, answered := at[c]
		silent[c] = !answered
	}
	return silent, failed
}

// tieTo finds the etcd of the stream among those of others. If it is none of them, the stream has an etcd of its own. tieTo
// waits for no etcd that does not answer. Whether the two are one is found out when it matters, and asking both costs little.
func (c *Stream) tieTo(ctx context.Context, answers func(*Stream) bool) error {
	for _, head := range c.all.heads() {
		if !answers(head) {
			continue
		}
		together, err := head.sameEtcd(ctx, c, (*asker).now)
		if err != nil {
			return err
		}
		if together {
			break
		}
	}
	c.isTied()
	return nil
}

func (c *Stream) isTied() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.etcd.tied = true
}

// untied gives some followed streams whose etcd was not looked for yet, one of each group that was found to be together. First
// comes first, if it is such a stream, then the busiest, because others want to know of them.
func (r *Streams) untied(first *Stream) (found []*Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := slices.SortedStableFunc(slices.Values(r.streams), func(a, b *Stream) int { return cmp.Compare(b.claimed, a.claimed) })
	if first != nil {
		order = slices.Insert(order, 0, first)
	}
	known := map[*etcd]bool{}
	for _, c := range order {
		if c.comparesLocked() && !c.etcd.tied && !known[c.etcd] && !r.tried[c] && len(found) < tiesPerRound {
			known[c.etcd] = true
			found = append(found, c)
		}
	}
	return found
}

// heads are one stream of each etcd.
func (r *Streams) heads() (found []*Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[*etcd]bool{}
	for _, c := range r.streams {
		if c.comparesLocked() && c.etcd.tied && !known[c.etcd] {
			known[c.etcd] = true
			found = append(found, c)
		}
	}
	return found
}

// comparesLocked reports whether the present resource versions of the stream can be compared with those of others.
func (c *Stream) comparesLocked() bool { return c.asksLocked() && c.position != 0 && !c.reversed }

// newestOfEach is, of each etcd, the stream that has come furthest.
func (r *Streams) newestOfEach() []*Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	furthest := map[*etcd]*Stream{}
	for _, c := range r.streams {
		if !c.provesLocked() || c.position == 0 || !c.etcd.tied {
			continue
		}
		if best := furthest[c.etcd]; best == nil || c.position > best.position {
			furthest[c.etcd] = c
		}
	}
	found := make([]*Stream, 0, len(furthest))
	for _, c := range furthest {
		found = append(found, c)
	}
	return found
}
