package reflector

import (
	"context"
	"errors"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

const (
	// quietLeast is how long a stream is quiet at least before the reflector looks at it.
	quietLeast = 5 * time.Second
	// quietShare is how many looks there are while etcd keeps a revision. When a recorder is killed, a position is at
	// most one such interval old.
	quietShare = 6
)

// QuietEvery returns how often to look at a quiet stream, given how much history etcd keeps.
func QuietEvery(kept, most time.Duration) time.Duration {
	return min(max(kept/quietShare, quietLeast), most)
}

// quiet holds the age of a stream's position.
type quiet struct {
	bookmarks   bool      // the server has sent one
	noBookmarks bool      // the server sends no bookmarks
	since       time.Time // when the position last moved
	stalled     bool      // the newest bookmark did not move the position
	again       time.Time // when to look again
	missed      uint64    // the position after which a look has found something, 0 if none has

	most      time.Duration // Options.LookInterval
	revisions Revisions     // Options.Revisions
	clock     clock.PassiveClock
}

func newQuiet(options *Options) *quiet {
	return &quiet{
		noBookmarks: options.NoBookmarks, since: options.Clock.Now(),
		most: options.LookInterval, revisions: options.Revisions, clock: options.Clock,
	}
}

// heard notes an event that the store has accepted.
func (q *quiet) heard(kind watch.EventType, moved bool) {
	if kind == watch.Bookmark {
		q.bookmarks, q.noBookmarks = true, false
	}
	if moved {
		q.since, q.stalled = q.clock.Now(), false
		return
	}
	q.stalled = q.stalled || kind == watch.Bookmark
}

// moved notes that the position was moved without an event.
func (q *quiet) moved() { q.since = q.clock.Now() }

// every returns how often the reflector looks at a quiet stream.
func (q *quiet) every() time.Duration {
	if q.revisions == nil {
		return q.most
	}
	return QuietEvery(q.revisions.Kept(), q.most)
}

// untilLook returns when the next look is due, or when to check again.
func (q *quiet) untilLook() time.Duration {
	still := q.clock.Since(q.since)
	every := q.most
	switch {
	case q.bookmarks && !q.stalled:
		return every
	case !q.bookmarks && still >= every:
		q.noBookmarks = true
	}
	if q.noBookmarks {
		every = q.every()
	}
	return max(every-still, q.again.Sub(q.clock.Now()))
}

// lookIfQuiet moves the position of a stream if neither an event nor a bookmark moves it. The position of a quiet stream grows old, until etcd
// has compacted it. Then the server would refuse the next watch, and nothing would show whether something was missed.
// So the position moves to a version up to which lookIfQuiet has proved that nothing happened.
func (r *recoverer) lookIfQuiet(ctx context.Context) error {
	r.quiet.again = r.options.Clock.Now().Add(r.options.LookInterval)
	// The reflector has read the watch until now: no more deletes of one lease follow.
	r.place.waited()
	from, err := strconv.ParseUint(r.place.at.Complete, 10, 64)
	if err != nil || r.options.RecoverRevisions == 0 || !r.place.recorded() {
		return nil // opaque versions cannot be counted
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	c := &recovery{r: r, from: from, quiet: true}
	nothing, err := c.nothingSince(ctx)
	r.log.DebugContext(ctx, "quiet stream looked at", "from", from, "to", c.to, "revisions", len(c.points),
		"requests", c.requests.Load(), "nothing_happened", nothing, "error", err)
	if r.quiet.noBookmarks && !isLasting(err) {
		r.quiet.again = r.options.Clock.Now().Add(r.quiet.every())
	}
	switch {
	case nothing:
		return c.moveToEnd()
	case err != nil || c.to == c.from:
		return nil // The next look tries again.
	case r.quiet.missed == from:
		// The watch had the time of another look to serve the change.
		r.quiet.missed = 0
		return errSilent
	}
	r.quiet.missed = from // The watch will soon serve the change.
	return nil
}

// errManyLooks says that the looks at all quiet streams have used up their requests.
var errManyLooks = errors.New("the looks at all quiet streams have used up their requests; the next look comes in its turn")

// isLasting reports whether the next look would most likely meet the same error.
func isLasting(err error) bool {
	var lasting *unrecoverable
	return errors.As(err, &lasting) || isExpired(err) || isClientError(err)
}

// nothingSince sets c.to, the server's present version, and reports whether it is proved that nothing has happened up
// to there.
func (c *recovery) nothingSince(ctx context.Context) (bool, error) {
	if err := c.findNow(ctx); err != nil || c.to == c.from {
		return false, err
	}
	release, err := c.findPoints(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	return c.nothingHappened(ctx)
}
