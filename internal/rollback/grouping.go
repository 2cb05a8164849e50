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
	// groupedPerRound bounds how many streams are assigned to their etcd in one round. Each costs two small lists.
	groupedPerRound = 20
	// groupTimeout bounds how long a recovery waits until the streams of its round are assigned.
	groupTimeout = 2 * time.Second
)

// grouping finds out which streams are in one etcd.
type grouping struct {
	all   *Streams
	turn  chan struct{}    // holds one element while a round runs
	tried map[*Stream]bool // the streams that were looked at in earlier rounds; belongs to the round that runs
}

func newGrouping(all *Streams) *grouping {
	return &grouping{all: all, turn: make(chan struct{}, 1), tried: map[*Stream]bool{}}
}

// groupSome assigns a few streams to their etcd. Streams for which the server did not answer have their next turn
// after all others.
func (g *grouping) groupSome(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case g.turn <- struct{}{}:
	}
	defer func() { <-g.turn }()
	return g.group(ctx, g.ungrouped(nil))
}

// groupFirst assigns the stream to its etcd, and some other streams with it. Otherwise, when a server returns, each
// stream would ask about each other stream. It returns an error only if ctx has ended. If the server does not
// answer for the stream, the caller finds that out with its next request.
func (g *grouping) groupFirst(ctx context.Context, c *Stream) error {
	bounded, cancel := context.WithTimeout(ctx, groupTimeout)
	defer cancel()
	select {
	case <-bounded.Done():
		return ctx.Err()
	case g.turn <- struct{}{}:
	}
	defer func() { <-g.turn }()
	if ungrouped := g.ungrouped(c); slices.Contains(ungrouped, c) {
		_ = g.group(bounded, ungrouped) // The prober, or the next caller that needs an answer, asks again.
	}
	return ctx.Err()
}

// group assigns streams to their etcd. It lists each of them between two lists of a stream of each known etcd (I4).
func (g *grouping) group(ctx context.Context, ungrouped []*Stream) error {
	if len(ungrouped) == 0 {
		clear(g.tried)
		return nil
	}
	representatives := g.representatives()
	before, failed := listRevisions(ctx, slices.Concat(ungrouped, representatives))
	answers := func(c *Stream) bool { _, answered := before[c]; return answered }
	answering := slices.DeleteFunc(slices.Clone(ungrouped), func(c *Stream) bool { return !answers(c) })
	representatives = slices.DeleteFunc(representatives, func(h *Stream) bool { return !answers(h) })
	if len(representatives) == 0 && len(answering) > 0 {
		representatives = []*Stream{answering[0]}
	}
	at, failedThen := listRevisions(ctx, answering)
	after, failedLast := listRevisions(ctx, representatives)
	failed = errors.Join(failed, failedThen, failedLast)
	for _, c := range ungrouped {
		g.tried[c] = true
		sharing := slices.IndexFunc(representatives, func(h *Stream) bool {
			return before[h] != 0 && before[h] <= at[c] && at[c] <= after[h]
		})
		switch {
		case !answers(c), ctx.Err() != nil:
		case sharing >= 0:
			join(representatives[sharing], c)
			g.noteGrouped(c)
		default:
			failed = errors.Join(failed, g.find(ctx, c, answers))
		}
	}
	return failed
}

// find looks for the etcd of the stream among the known ones. If it is none of them, the stream has an etcd of its
// own. find does not wait for an etcd that does not answer. Whether the two are one etcd is found out when it
// matters, and to ask both costs little.
func (g *grouping) find(ctx context.Context, c *Stream, answers func(*Stream) bool) error {
	for _, representative := range g.representatives() {
		if !answers(representative) {
			continue
		}
		same, err := sameEtcd(ctx, representative, c, (*asker).listRevision)
		if err != nil {
			return err
		}
		if same {
			break
		}
	}
	g.noteGrouped(c)
	return nil
}

// noteGrouped notes that the stream's etcd was looked for.
func (g *grouping) noteGrouped(c *Stream) {
	g.all.mu.Lock()
	defer g.all.mu.Unlock()
	c.etcd.grouped = true
}

// ungrouped returns some followed streams whose etcd was not looked for yet, one of each group that is known to
// share an etcd. If first is such a stream, it comes first. Then come the busiest, because other streams ask about
// them.
func (g *grouping) ungrouped(first *Stream) (found []*Stream) {
	g.all.mu.Lock()
	defer g.all.mu.Unlock()
	order := slices.SortedStableFunc(slices.Values(g.all.streams), func(a, b *Stream) int { return cmp.Compare(b.claims.count, a.claims.count) })
	if first != nil {
		order = slices.Insert(order, 0, first)
	}
	known := map[*etcdState]bool{}
	for _, c := range order {
		if comparesLocked(c) && !c.etcd.grouped && !known[c.etcd] && !g.tried[c] && len(found) < groupedPerRound {
			known[c.etcd] = true
			found = append(found, c)
		}
	}
	return found
}

// representatives returns one stream of each etcd.
func (g *grouping) representatives() (found []*Stream) {
	g.all.mu.Lock()
	defer g.all.mu.Unlock()
	known := map[*etcdState]bool{}
	for _, c := range g.all.streams {
		if comparesLocked(c) && c.etcd.grouped && !known[c.etcd] {
			known[c.etcd] = true
			found = append(found, c)
		}
	}
	return found
}

// comparesLocked reports whether the stream's present resource version can be compared with those of other streams.
func comparesLocked(c *Stream) bool {
	return c.following.canAsk() && c.progress.position != 0 && !c.history.rolledBack
}

// listRevisions asks for the present revision of streams, all at once, because the server may hang for many. It
// returns only the streams for which the server answers.
func listRevisions(ctx context.Context, streams []*Stream) (at map[*Stream]uint64, failed error) {
	found, errs := make([]uint64, len(streams)), make([]error, len(streams))
	var asking sync.WaitGroup
	for i, c := range streams {
		asking.Go(func() { found[i], errs[i] = c.ask.listRevision(ctx) })
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

// findUnanswered finds out for which streams the server does not answer now.
func findUnanswered(ctx context.Context, streams []*Stream) (unanswered map[*Stream]bool, failed error) {
	at, failed := listRevisions(ctx, streams)
	unanswered = map[*Stream]bool{}
	for _, c := range streams {
		_, answered := at[c]
		unanswered[c] = !answered
	}
	return unanswered, failed
}
