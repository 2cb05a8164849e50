package rollback

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

const (
	// busierWait is how long a stream waits without progress: no revision is claimed, and no busier stream moves its
	// position. An API server keeps the history that follows for more than a minute. If it forgets that history meanwhile,
	// the stream recovers once more.
	busierWait = 10 * time.Second
	// busierLongWait is how long a stream waits if it would have to look at more than fewLooks revisions. Every
	// other stream would look at as many, and delay the very streams that could claim them.
	busierLongWait = time.Minute
	fewLooks       = 50
	// busierLongestWait bounds the wait for streams that make progress. Positions are a minute old when a server
	// restarts, and etcd keeps five minutes. A resource without writes may never catch up.
	busierLongestWait = 3 * time.Minute
	// busierPoll is how often a waiting stream looks whether the busier ones have made progress.
	busierPoll = 100 * time.Millisecond
	// unansweredWait is how long a recovery waits for streams for which a restarted server does not answer yet.
	// Without it, every other stream would list each revision that they have claimed.
	unansweredWait = 20 * time.Second
	// unansweredRetry is the time from a request without an answer to the next one.
	unansweredRetry = time.Second
)

// errBusierBehind makes the reflector repeat its look later.
var errBusierBehind = errors.New("a busier stream has not claimed its revisions yet; trying again later")

// Unaccounted implements reflector.Revisions. The busiest stream goes first: the other streams need not look at the
// revisions that it claims.
func (c *Stream) Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error) {
	return (&stretch{stream: c, from: from, to: to}).unaccounted(ctx, limit, wait)
}

// stretch holds the revisions that a stream has to account for: those after from, up to and including to.
type stretch struct {
	stream   *Stream
	from, to uint64
}

func (s *stretch) unaccounted(ctx context.Context, limit int, wait bool) ([]uint64, error) {
	if unclaimed, movedAt := s.unclaimedByBusier(); !wait && unclaimed > fewLooks && time.Since(movedAt) < busierLongWait {
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

// awaitBusier waits until the revisions are claimed, or no busier stream is behind. It ends if nothing moves for busierWait, or
// for busierLongWait if more than fewLooks are unclaimed, and always after busierLongestWait. Busier streams recover one after
// the other, so the progress of any of them counts.
func (s *stretch) awaitBusier(ctx context.Context) error {
	beganAt := time.Now()
	fewest, progressAt := math.MaxInt, beganAt
	look := time.NewTicker(busierPoll)
	defer look.Stop()
	for {
		unclaimed, movedAt := s.unclaimedByBusier()
		if unclaimed == 0 {
			return nil
		}
		if unclaimed < fewest {
			fewest, progressAt = unclaimed, time.Now()
		}
		limit := busierWait
		if unclaimed > fewLooks {
			limit = busierLongWait
		}
		if time.Since(times.Later(movedAt, progressAt)) >= limit || time.Since(beganAt) >= busierLongestWait {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// unclaimedByBusier returns how many revisions no stream has claimed, and when a busier stream last made progress.
// If no busier stream is behind these revisions, it returns 0.
func (s *stretch) unclaimedByBusier() (unclaimed int, movedAt time.Time) {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	busier, claimed := false, 0
	for _, other := range s.stream.all.streams {
		claimed += len(claimsLocked(other, s.from, s.to))
		follows := other.progress.position >= s.to || other.following.accepted()
		if other.following.canAsk() && !follows && busierLocked(other, s.stream) {
			busier = true
			if other.progress.movedAt.After(movedAt) {
				movedAt = other.progress.movedAt
			}
		}
	}
	if !busier || s.to <= s.from {
		return 0, movedAt
	}
	return max(0, int(min(s.to-s.from, math.MaxInt32))-claimed), movedAt
}

// busierLocked reports whether a stream has had more revisions than another. In this order, no two streams wait for
// each other.
func busierLocked(c, than *Stream) bool {
	return c.claims.count > than.claims.count || c.claims.count == than.claims.count && c.index < than.index && c.claims.count > 0
}

// claimedByNeighbours returns, in order, the revisions that other streams of this etcd have claimed. A claim counts
// if etcd still has the history in which that stream was served. An etcd that was put back gives
// the same revisions to other writes.
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

// neighboursInTime asks which streams are in this etcd. With wait, it asks again until the server answers for all
// streams with many claims, or unansweredWait is over.
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

// neighbours returns the claimants that are in this etcd. For the unanswered ones, the server does not answer now,
// so their etcd is not known.
func (s *stretch) neighbours(ctx context.Context) (neighbours, unanswered []*Stream, err error) {
	for _, other := range s.claimants() {
		same, answered, err := s.sharesEtcd(ctx, other)
		if err != nil {
			return nil, nil, err
		}
		if same {
			neighbours = append(neighbours, other)
		}
		if !answered && canAsk(other) {
			unanswered = append(unanswered, other)
		}
	}
	return neighbours, unanswered, nil
}

// sharesEtcd reports whether another stream is in this etcd, and whether the server has answered for that stream.
// It returns an error if the server does not answer for this one.
func (s *stretch) sharesEtcd(ctx context.Context, other *Stream) (same, answered bool, err error) {
	if !s.mayAsk(other) {
		return false, false, nil
	}
	same, err = sameEtcd(ctx, s.stream, other, (*asker).listRevision)
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

// mayAsk reports whether a request may now ask in which etcd another stream is. As long as the server does not
// answer for that stream, only one recovery asks in each unansweredRetry.
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

// union returns the revisions of some streams up to and including to, in order and each once.
func (s *stretch) union(streams []*Stream, to uint64) []uint64 {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	var all []uint64
	for _, other := range streams {
		all = append(all, claimsLocked(other, s.from, to)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// claimsLocked returns the claims of the stream after from, up to and including to. As long as its history is not certain, it
// has none: they may be of the old history.
func claimsLocked(c *Stream, from, to uint64) []uint64 {
	if !c.history.certain() {
		return nil
	}
	return c.claims.within(from, to)
}

// claimants returns the other streams that have claimed one of the revisions.
func (s *stretch) claimants() []*Stream {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	var others []*Stream
	for _, other := range s.stream.all.streams {
		if other != s.stream && len(claimsLocked(other, s.from, s.to)) > 0 {
			others = append(others, other)
		}
	}
	return others
}

// provedUpTo returns up to which revision etcd has the history in which these streams were served. They must be
// streams of one etcd. It returns 0 if etcd has another history, or does not say. It checks the newest versions of
// the streams, the newest of all first. The first one for which etcd has an answer decides for all streams. It returns an error if no version has shown the history, and the server did
// not answer for a stream.
func provedUpTo(ctx context.Context, neighbours []*Stream) (revision uint64, failed error) {
	newest := newestOf(neighbours)
	for _, o := range newest[:min(len(newest), askedPerEtcd)] {
		switch result, err := o.stream.ask.look(ctx, o.servedVersion, o.revision); {
		case err != nil:
			failed = errors.Join(failed, err)
		case result == match:
			return o.revision, nil
		case result == inconclusive: // The server may not have it for this stream alone, if a conversion fails.
		default:
			return 0, nil
		}
	}
	return 0, failed
}

// newestOf returns the newest living versions of streams, the newest of all first.
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
