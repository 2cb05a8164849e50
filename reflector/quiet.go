package reflector

import (
	"context"
	"errors"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// quietLeast is how long a stream is quiet at least before it is looked at.
	quietLeast = 5 * time.Second
	// quietShare is how many looks there are while etcd keeps a revision. A
	// position is one such stretch old at most when a recorder is killed, and
	// the history doubles between two compactions: that leaves four sixths.
	quietShare = 6
)

// QuietEvery is how often a quiet stream is looked at, of which etcd is known
// to keep so much history.
func QuietEvery(kept, most time.Duration) time.Duration {
	return min(max(kept/quietShare, quietLeast), most)
}

// quiet is what a stream knows of the age of its position.
type quiet struct {
	unmarked bool      // the server sends no bookmarks
	since    time.Time // when the position last moved
	stalled  bool      // the newest bookmark did not
	again    time.Time // when to look again
	missed   uint64    // the position after which a look has found something, 0 if none has
}

// heard notes an event that the store has accepted.
func (q *quiet) heard(kind watch.EventType, moved bool, now time.Time) {
	if moved {
		q.since, q.stalled = now, false
		return
	}
	q.stalled = q.stalled || kind == watch.Bookmark
}

// whenQuiet is called when a watch may have been quiet for long enough to mean
// something, and returns when to ask again.
func (r *Reflector) whenQuiet(ctx context.Context, s *stream) (time.Duration, error) {
	heard := r.clock.Since(s.heard)
	if heard < settleAfter {
		return settleAfter - heard, nil
	}
	if err := r.nowWorks(s); err != nil {
		return 0, err
	}
	if r.bookmarks && heard >= r.options.SilenceTimeout {
		r.at.ended(r.clock.Now())
		return 0, errSilent
	}
	if r.untilLook() <= 0 {
		if err := r.lookIfQuiet(ctx); err != nil {
			return 0, err
		}
	}
	if r.bookmarks {
		return min(r.untilLook(), r.options.SilenceTimeout-heard), nil
	}
	return r.untilLook(), nil
}

// quietEvery is how often a quiet stream is looked at.
func (r *Reflector) quietEvery() time.Duration {
	if r.options.Revisions == nil {
		return r.options.UnmarkedTimeout
	}
	return QuietEvery(r.options.Revisions.Kept(), r.options.UnmarkedTimeout)
}

// untilLook is when the next look is due, or when to ask again.
func (r *Reflector) untilLook() time.Duration {
	still := r.clock.Since(r.quiet.since)
	every := r.options.UnmarkedTimeout
	switch {
	case r.bookmarks && !r.quiet.stalled:
		return every
	case !r.bookmarks && still >= every:
		r.quiet.unmarked = true
	}
	if r.quiet.unmarked {
		every = r.quietEvery()
	}
	return max(every-still, r.quiet.again.Sub(r.clock.Now()))
}

// lookIfQuiet moves the position of a stream for which nothing else does. The
// position of a quiet stream grows old, until etcd has compacted it. Then the
// server would refuse the next watch, and nothing would show whether something
// was missed. So the position moves to where it is proved that nothing has
// happened.
func (r *Reflector) lookIfQuiet(ctx context.Context) error {
	r.quiet.again = r.clock.Now().Add(r.options.UnmarkedTimeout)
	// The watch has been waited for until now: no more deletes of one lease
	// follow.
	r.at.ended(r.clock.Now())
	from, err := strconv.ParseUint(r.at.Complete, 10, 64)
	if err != nil || r.options.RecoverRevisions == 0 || !r.recorded() {
		return nil // opaque versions cannot be counted
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	c := &recovery{r: r, from: from, quiet: true}
	nothing, err := c.nothingSince(ctx)
	r.log.DebugContext(ctx, "quiet stream looked at", "from", from, "to", c.to, "revisions", len(c.points),
		"requests", c.requests.Load(), "nothing_happened", nothing, "error", err)
	if r.quiet.unmarked && !isLasting(err) {
		r.quiet.again = r.clock.Now().Add(r.quietEvery())
	}
	switch {
	case nothing:
		return r.bring(watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(c.to, 10)}}})
	case err != nil || c.to == c.from:
		return nil // What could not be found out is asked again.
	case r.quiet.missed == from:
		// The watch has had the time of another look to say what has happened.
		r.quiet.missed = 0
		return errSilent
	}
	r.quiet.missed = from // The watch is about to say what has happened.
	return nil
}

// errManyLooks says that the looks at all quiet streams have taken as many requests as they may.
var errManyLooks = errors.New("the looks at all quiet streams have taken as many requests as they may")

// isLasting reports an error that the next look would most likely meet again.
func isLasting(err error) bool {
	var lasting *unrecoverable
	return errors.As(err, &lasting) || isExpired(err) || isClientError(err)
}

// nothingSince sets to to where the server is, and reports whether it is proved
// that nothing has happened up to there.
func (c *recovery) nothingSince(ctx context.Context) (bool, error) {
	if err := c.findNow(ctx); err != nil || c.to == c.from {
		return false, err
	}
	release, err := c.findPoints(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	return c.proved(ctx)
}
