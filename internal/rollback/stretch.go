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
	// busierLook is how often it is looked whether they have.
	busierLook = 100 * time.Millisecond
	// silentWait is how long a recovery waits for streams for which a restarted server does not answer yet. Without it, every
	// other stream would list each revision that they have claimed.
	silentWait = 20 * time.Second
	// silentPause is how long nobody asks again after there was no answer.
	silentPause = time.Second
)

// errBusierComesFurther has a look be made again in its turn.
var errBusierComesFurther = errors.New("a busier stream is about to say which revisions are its")

// Unaccounted implements reflector.Revisions. The busiest stream goes first: what it finds to be its, the others need not
// look at.
func (c *Stream) Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error) {
	return (&stretch{of: c, from: from, to: to}).unaccounted(ctx, limit, wait)
}

// stretch is what a stream looks for in history: the revisions after from, up to to.
type stretch struct {
	of       *Stream
	from, to uint64
}

func (s *stretch) unaccounted(ctx context.Context, limit int, wait bool) ([]uint64, error) {
	if unclaimed, moved := s.mayLearn(); !wait && unclaimed > fewLooks && time.Since(moved) < busierLongWait {
		return nil, errBusierComesFurther
	}
	if wait {
		if err := s.awaitBusier(ctx); err != nil {
			return nil, err
		}
	}
	trusted, err := s.trusted(ctx, wait)
	if err != nil {
		return nil, err
	}
	var left []uint64
	for revision := s.from + 1; revision <= s.to && len(left) <= limit; revision++ {
		if len(trusted) > 0 && trusted[0] == revision {
			trusted = trusted[1:]
			continue
		}
		left = append(left, revision)
	}
	return left, nil
}

// awaitBusier returns when no busier stream is on its way to say more.
func (s *stretch) awaitBusier(ctx context.Context) error {
	began := time.Now()
	look := time.NewTicker(busierLook)
	defer look.Stop()
	for {
		limit := busierWait
		unclaimed, moved := s.mayLearn()
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
func (s *stretch) mayLearn() (unclaimed int, moved time.Time) {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	busier, claimed := false, 0
	for _, other := range s.of.all.streams {
		claimed += len(other.claims.within(s.from, s.to))
		follows := other.place.position >= s.to || other.following.watches()
		if other.following.asks() && !follows && busierLocked(other, s.of) {
			busier = true
			if other.place.moved.After(moved) {
				moved = other.place.moved
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
func (s *stretch) trusted(ctx context.Context, wait bool) ([]uint64, error) {
	together, err := s.togetherInTime(ctx, wait)
	if err != nil {
		return nil, err
	}
	proved, err := proved(ctx, together)
	if err != nil {
		return nil, err
	}
	return s.union(together, min(s.to, proved)), nil
}

// togetherInTime asks which streams are in this etcd, with wait until none with many claims is silent or silentWait is over.
func (s *stretch) togetherInTime(ctx context.Context, wait bool) ([]*Stream, error) {
	began := time.Now()
	if err := s.of.all.ties.first(ctx, s.of); err != nil {
		return nil, err
	}
	for {
		together, silent, err := s.together(ctx)
		if err != nil || !wait || len(s.union(silent, s.to)) <= fewLooks || time.Since(began) >= silentWait {
			return together, err
		}
		timer := time.NewTimer(silentPause)
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
func (s *stretch) together(ctx context.Context) (together, silent []*Stream, err error) {
	for _, other := range s.claimants() {
		same, answered, err := s.askBeside(ctx, other)
		if err != nil {
			return nil, nil, err
		}
		if same {
			together = append(together, other)
		}
		if !answered && other.asks() {
			silent = append(silent, other)
		}
	}
	return together, silent, nil
}

// askBeside reports whether another stream is in this etcd, and whether the server has answered for that one. The error is that
// it does not answer for this one.
func (s *stretch) askBeside(ctx context.Context, other *Stream) (same, answered bool, err error) {
	if !s.mayAsk(other) {
		return false, false, nil
	}
	same, err = sameEtcd(ctx, s.of, other, (*asker).now)
	if unansweredFor(s.of, err) {
		return false, false, err
	}
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	if other.silent = time.Now(); err == nil {
		other.silent = time.Time{}
	}
	return same, err == nil, nil
}

// mayAsk reports whether another stream may be asked now in which etcd it is. While there is no answer, one of those who would
// ask does so each silentPause.
func (s *stretch) mayAsk(other *Stream) bool {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	switch {
	case other.silent.IsZero(), other.etcd == s.of.etcd:
		return true
	case time.Since(other.silent) < silentPause:
		return false
	}
	other.silent = time.Now()
	return true
}

// union gives the revisions up to to of some streams, in order and each once.
func (s *stretch) union(of []*Stream, to uint64) []uint64 {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	var all []uint64
	for _, other := range of {
		all = append(all, other.claims.within(s.from, to)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// claimants are the other streams that have claimed one of the revisions.
func (s *stretch) claimants() []*Stream {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	var others []*Stream
	for _, other := range s.of.all.streams {
		if other != s.of && len(other.claims.within(s.from, s.to)) > 0 {
			others = append(others, other)
		}
	}
	return others
}

// proved is up to where etcd has the history in which streams of one etcd were served. It is 0 if etcd has another history, or
// does not know. It looks for the newest version of each stream, beginning with the newest of all. The error is that no
// version has shown it, and that the server did not answer for a stream.
func proved(ctx context.Context, together []*Stream) (revision uint64, failed error) {
	newest := newestOf(together)
	for _, f := range newest[:min(len(newest), askedBeside)] {
		switch what, err := f.of.ask.look(ctx, f.witness, f.revision); {
		case err != nil:
			failed = errors.Join(failed, err)
		case what == same:
			return f.revision, nil
		case what == unknown: // The server may not have it for this one alone, where a conversion fails.
		default:
			return 0, nil
		}
	}
	return 0, failed
}

// newestOf are the newest living versions of streams, the newest of all first.
func newestOf(streams []*Stream) (newest []footprint) {
	for _, c := range streams {
		c.all.mu.Lock()
		w := c.living.newest()
		c.all.mu.Unlock()
		if w.revision != 0 {
			newest = append(newest, footprint{of: c, witness: w})
		}
	}
	slices.SortFunc(newest, func(a, b footprint) int { return cmp.Compare(b.revision, a.revision) })
	return newest
}
