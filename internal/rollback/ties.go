package rollback

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// tiesPerRound bounds how many streams are assigned to their etcd in one round, by two small lists each.
	tiesPerRound = 20
	// tieTimeout bounds how long a recovery is held up by others that are assigned with its stream.
	tieTimeout = 2 * time.Second
)

// ties finds out which streams are in one etcd.
type ties struct {
	all   *Streams
	turn  chan struct{}    // holds one while streams are tied
	tried map[*Stream]bool // of which it was looked lately in which etcd they are; of who has the turn
}

func tiesOf(all *Streams) *ties {
	return &ties{all: all, turn: make(chan struct{}, 1), tried: map[*Stream]bool{}}
}

// some ties a few streams. Those for which the server did not answer have their turn again after all others.
func (t *ties) some(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case t.turn <- struct{}{}:
	}
	defer func() { <-t.turn }()
	return t.tie(ctx, t.untied(nil))
}

// first ties the stream, and some others with it. Otherwise, when a server returns, each stream would ask for itself about
// each other one. The error is that ctx has ended. If the server does not answer for the stream, whatever asks about it finds
// that out.
func (t *ties) first(ctx context.Context, c *Stream) error {
	bounded, cancel := context.WithTimeout(ctx, tieTimeout)
	defer cancel()
	select {
	case <-bounded.Done():
		return ctx.Err()
	case t.turn <- struct{}{}:
	}
	defer func() { <-t.turn }()
	if untied := t.untied(c); slices.Contains(untied, c) {
		_ = t.tie(bounded, untied) // What failed is asked again, by the prober or by who needs it.
	}
	return ctx.Err()
}

// tie ties streams to one etcd or another. Those for which the server answers are listed between two lists of each etcd that is
// known (I4).
func (t *ties) tie(ctx context.Context, untied []*Stream) error {
	if len(untied) == 0 {
		clear(t.tried)
		return nil
	}
	heads := t.heads()
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
		t.tried[c] = true
		beside := slices.IndexFunc(heads, func(h *Stream) bool {
			return before[h] != 0 && before[h] <= at[c] && at[c] <= after[h]
		})
		switch {
		case !answers(c), ctx.Err() != nil:
		case beside >= 0:
			join(heads[beside], c)
			t.isTied(c)
		default:
			failed = errors.Join(failed, t.find(ctx, c, answers))
		}
	}
	return failed
}

// find finds the etcd of the stream among those of others. If it is none of them, the stream has an etcd of its own. find waits
// for no etcd that does not answer. Whether the two are one is found out when it matters, and asking both costs little.
func (t *ties) find(ctx context.Context, c *Stream, answers func(*Stream) bool) error {
	for _, head := range t.heads() {
		if !answers(head) {
			continue
		}
		together, err := sameEtcd(ctx, head, c, (*asker).now)
		if err != nil {
			return err
		}
		if together {
			break
		}
	}
	t.isTied(c)
	return nil
}

func (t *ties) isTied(c *Stream) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	c.etcd.tied = true
}

// untied gives some followed streams whose etcd was not looked for yet, one of each group that was found to be together. First
// comes first, if it is such a stream, then the busiest, because others want to know of them.
func (t *ties) untied(first *Stream) (found []*Stream) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	order := slices.SortedStableFunc(slices.Values(t.all.streams), func(a, b *Stream) int { return cmp.Compare(b.claims.count, a.claims.count) })
	if first != nil {
		order = slices.Insert(order, 0, first)
	}
	known := map[*etcd]bool{}
	for _, c := range order {
		if comparesLocked(c) && !c.etcd.tied && !known[c.etcd] && !t.tried[c] && len(found) < tiesPerRound {
			known[c.etcd] = true
			found = append(found, c)
		}
	}
	return found
}

// heads are one stream of each etcd.
func (t *ties) heads() (found []*Stream) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	known := map[*etcd]bool{}
	for _, c := range t.all.streams {
		if comparesLocked(c) && c.etcd.tied && !known[c.etcd] {
			known[c.etcd] = true
			found = append(found, c)
		}
	}
	return found
}

// comparesLocked reports whether the present resource versions of the stream can be compared with those of others.
func comparesLocked(c *Stream) bool {
	return c.following.asks() && c.place.position != 0 && !c.history.reversed
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
