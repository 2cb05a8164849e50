package rollback

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"
)

const (
	// busierWait is how long a stream waits for busier ones to find out what is theirs. An API server keeps the history
	// that follows for more than a minute.
	busierWait = 10 * time.Second
	// busierLongWait is how long a stream waits if it would have to look at more than fewLooks revisions itself. Every other
	// stream would do the same, and hold up the very streams that can tell.
	busierLongWait = time.Minute
	fewLooks       = 50
	// busierLongestWait bounds the wait for streams that make progress. Positions are a minute old when a server restarts, and
	// etcd keeps five. If nobody writes to a resource, its watch cache does not fill.
	busierLongestWait = 3 * time.Minute
	// busierPoll is how often it is looked whether they have.
	busierPoll = 100 * time.Millisecond
	// silentWait is how long a recovery waits for streams for which a restarted server does not answer yet. Without it, every
	// other stream would list each revision that they have claimed.
	unansweredWait = 20 * time.Second
	// silentPause is how long nobody asks again after there was no answer.
	unansweredRetry = time.Second
)

// errBusierComesFurther has a look be made again in its turn.
var errBusierBehind = errors.New("a busier stream is about to say which revisions are its")

// Unaccounted implements reflector.Revisions. The busiest stream goes first: what it finds to be its, the others need not
// look at.
func (c *Stream) Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error) {
	return (&stretch{stream: c, from: from, to: to}).unaccounted(ctx, limit, wait)
}

// stretch is what a stream looks for in history: the revisions after from, up to to.
type stretch struct {
	stream   *Stream
	from, to uint64
}

func (s *stretch) unaccounted(ctx context.Context, limit int, wait bool) ([]uint64, error) {
	if unclaimed, moved := s.unclaimedByBusier(); !wait && unclaimed > fewLooks && time.Since(moved) < busierLongWait {
		return nil, errBusierBehind
	}
	if wait {
		if err := s.awaitBusier(ctx); err != nil {
			return nil, err
		}
	}
	claimed, err := s.claimedByNeighbours(ctx, wait)
	if err != nil {
		return nil, err
	}
	var rest []uint64
	for revision := s.from + 1; revision <= s.to && len(rest) <= limit; revision++ {
		if len(claimed) > 0 && claimed[0] == revision {
			claimed = claimed[1:]
			continue
		}
		rest = append(rest, revision)
	}
	return rest, nil
}

// awaitBusier returns when no busier stream is on its way to say more.
func (s *stretch) awaitBusier(ctx context.Context) error {
	began := time.Now()
	look := time.NewTicker(busierPoll)
	defer look.Stop()
	for {
		limit := busierWait
		unclaimed, moved := s.unclaimedByBusier()
		switch {
		case unclaimed == 0:
			return nil
		case unclaimed > fewLooks:
			limit = busierLongWait
			if moved.Before(began) {
				moved = began
			}
		default:
			moved = began
		}
		if time.Since(moved) >= limit || time.Since(began) >= busierLongestWait {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// mayLearn gives how many revisions nobody has claimed, and when a busier stream last came further. If no busier stream is
// still behind them, it gives 0.
func (s *stretch) unclaimedByBusier() (unclaimed int, moved time.Time) {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	busier, claimed := false, 0
	for _, other := range s.stream.all.streams {
		claimed += len(other.claims.within(s.from, s.to))
		follows := other.progress.position >= s.to || other.following.accepted()
		if other.following.canAsk() && !follows && busierLocked(other, s.stream) {
			busier = true
			if other.progress.moved.After(moved) {
				moved = other.progress.moved
			}
		}
	}
	if !busier || s.to <= s.from {
		return 0, moved
	}
	return max(0, int(min(s.to-s.from, math.MaxInt32))-claimed), moved
}

// busierLocked reports whether more revisions were a stream's than another's. This order lets no two streams wait for each
// other.
func busierLocked(c, than *Stream) bool {
	return c.claims.count > than.claims.count || c.claims.count == than.claims.count && c.number < than.number && c.claims.count > 0
}

// trusted gives, in order, the revisions that count of other streams in this etcd. They count as far as that etcd still has the
// history in which they were served: an etcd restored from a snapshot gives the same revisions to other writes.
func (s *stretch) claimedByNeighbours(ctx context.Context, wait bool) ([]uint64, error) {
	neighbours, err := s.neighboursInTime(ctx, wait)
	if err != nil {
		return nil, err
	}
	upTo, err := provedUpTo(ctx, neighbours)
	if err != nil {
		return nil, err
	}
	return s.union(neighbours, min(s.to, upTo)), nil
}

// togetherInTime asks which streams are in this etcd, with wait until none with many claims is silent or silentWait is over.
func (s *stretch) neighboursInTime(ctx context.Context, wait bool) ([]*Stream, error) {
	began := time.Now()
	if err := s.stream.all.grouping.groupFirst(ctx, s.stream); err != nil {
		return nil, err
	}
	for {
		neighbours, unanswered, err := s.neighbours(ctx)
		if err != nil || !wait || len(s.union(unanswered, s.to)) <= fewLooks || time.Since(began) >= unansweredWait {
			return neighbours, err
		}
		timer := time.NewTimer(unansweredRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// together gives the streams with claims that are in this etcd. The server does not answer for silent ones now, so nothing shows
// where they are.
func (s *stretch) neighbours(ctx context.Context) (neighbours, unanswered []*Stream, err error) {
	for _, other := range s.claimants() {
		same, answered, err := s.sharesEtcd(ctx, other)
		if err != nil {
			return nil, nil, err
		}
		if same {
			neighbours = append(neighbours, other)
		}
		if !answered && other.canAsk() {
			unanswered = append(unanswered, other)
		}
	}
	return neighbours, unanswered, nil
}

// askBeside reports whether another stream is in this etcd, and whether the server has answered for that one. The error is that
// it does not answer for this one.
func (s *stretch) sharesEtcd(ctx context.Context, other *Stream) (same, answered bool, err error) {
	if !s.mayAsk(other) {
		return false, false, nil
	}
	same, err = sameEtcd(ctx, s.stream, other, (*asker).now)
	if noAnswerFor(s.stream, err) {
		return false, false, err
	}
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	if other.unansweredAt = time.Now(); err == nil {
		other.unansweredAt = time.Time{}
	}
	return same, err == nil, nil
}

// mayAsk reports whether another stream may be asked now in which etcd it is. While there is no answer, one of those who would
// ask does so each silentPause.
func (s *stretch) mayAsk(other *Stream) bool {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	switch {
	case other.unansweredAt.IsZero(), other.etcd == s.stream.etcd:
		return true
	case time.Since(other.unansweredAt) < unansweredRetry:
		return false
	}
	other.unansweredAt = time.Now()
	return true
}

// union gives the revisions up to to of some streams, in order and each once.
func (s *stretch) union(streams []*Stream, to uint64) []uint64 {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	var all []uint64
	for _, other := range streams {
		all = append(all, other.claims.within(s.from, to)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// claimants are the other streams that have claimed one of the revisions.
func (s *stretch) claimants() []*Stream {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	var others []*Stream
	for _, other := range s.stream.all.streams {
		if other != s.stream && len(other.claims.within(s.from, s.to)) > 0 {
			others = append(others, other)
		}
	}
	return others
}

// proved is up to where etcd has the history in which streams of one etcd were served. It is 0 if etcd has another history, or
// does not know. It looks for the newest version of each stream, beginning with the newest of all. The error is that no
// version has shown it, and that the server did not answer for a stream.
func provedUpTo(ctx context.Context, neighbours []*Stream) (revision uint64, failed error) {
	newest := newestOf(neighbours)
	for _, o := range newest[:min(len(newest), askedPerEtcd)] {
		switch result, err := o.stream.ask.look(ctx, o.servedVersion, o.revision); {
		case err != nil:
			failed = errors.Join(failed, err)
		case result == match:
			return o.revision, nil
		case result == inconclusive: // The server may not have it for this one alone, where a conversion fails.
		default:
			return 0, nil
		}
	}
	return 0, failed
}

// newestOf are the newest living versions of streams, the newest of all first.
func newestOf(streams []*Stream) (newest []observation) {
	for _, c := range streams {
		c.all.mu.Lock()
		v := c.living.newest()
		c.all.mu.Unlock()
		if v.revision != 0 {
			newest = append(newest, observation{stream: c, servedVersion: v})
		}
	}
	slices.SortFunc(newest, func(a, b observation) int { return cmp.Compare(b.revision, a.revision) })
	return newest
}
