package reflector

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// whenUnmarked is whenQuiet for a stream that has sent no bookmark. While it is
// quiet its position grows old, until etcd has compacted it: the next watch
// would be refused, and with it nothing told that something was missed, or
// that nothing was. So the position is moved, again and again, to where it is
// proved that nothing has happened.
func (r *Reflector) whenUnmarked(ctx context.Context, quiet time.Duration) (time.Duration, error) {
	if quiet < r.options.UnmarkedTimeout {
		return r.options.UnmarkedTimeout - quiet, nil
	}
	// The watch has been waited for until now: no more deletes of one lease
	// follow.
	r.at.ended(r.clock.Now())
	from, err := strconv.ParseUint(r.at.resumeFrom(), 10, 64)
	if err != nil || r.options.RecoverRevisions == 0 || !r.recorded() {
		return r.options.UnmarkedTimeout, nil // opaque versions cannot be counted
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	c := &recovery{r: r, from: from}
	nothing, err := c.nothingSince(ctx)
	r.log.DebugContext(ctx, "quiet stream looked at", "from", from, "to", c.to, "revisions", len(c.points),
		"requests", c.requests.Load(), "nothing_happened", nothing, "error", err)
	if nothing {
		return r.options.UnmarkedTimeout, r.bring(watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(c.to, 10)}}})
	}
	if err == nil && c.to != c.from && quiet >= 2*r.options.UnmarkedTimeout {
		// It has had the time of another look to say what has happened.
		return 0, errSilent
	}
	// What has happened, the watch is about to say. What could not be found out
	// is asked again.
	return r.options.UnmarkedTimeout, nil
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
