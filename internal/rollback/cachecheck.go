package rollback

import (
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// An API server that was not restarted with its etcd goes on with its old watch cache. The cache holds the lost
// versions, and lacks what the new history wrote in their place. Once the new history has passed the old one, the
// cache follows the new one, and its newest versions are right. So only its window shows that a cache is old: how
// far back it can be watched.

const (
	// nextEventWithin is how long the next event that a watch cache holds takes to arrive, at most.
	nextEventWithin = 2 * time.Second
	// comparedWithin is how long an API server takes, at most, until it has compared its caches with etcd. It
	// compares them every 5 to 7.5 minutes. If a cache differs, the server answers lists at exact resource versions
	// from etcd after that.
	comparedWithin = 8 * time.Minute
	// compareAgainAfter is the time from a comparison that proved nothing to the next one. A comparison takes two whole
	// lists.
	compareAgainAfter = time.Minute
)

// cacheCheck holds what is known of the watch cache of a rolled back stream, and checks whether the cache began in
// the new history.
type cacheCheck struct {
	cacheWindow
	newestRevision    uint64 // the newest revision that the cache has served: a cache never goes back behind that
	fork              *fork
	onRecord          bool      // the cache may have served the old history to an earlier recorder, too
	watchableRevision uint64    // a revision from which the cache could be watched
	watchableAt       time.Time // when that was seen; zero if it was not
	compareAt         time.Time // when to compare it with etcd
}

// newCacheCheck returns the check of a cache from which a watch of this process was accepted.
func newCacheCheck(cached cacheWindow, newestRevision uint64, f *fork) *cacheCheck {
	now := time.Now()
	c := &cacheCheck{cacheWindow: cached, newestRevision: newestRevision, fork: f, watchableRevision: newestRevision, watchableAt: now, compareAt: now.Add(comparedWithin)}
	if c.refused {
		c.acceptedRevision, c.watchableAt = math.MaxUint64, time.Time{} // From where the present cache can be watched is not known.
	}
	c.recentRevisions = slices.Clone(c.recentRevisions) // The open watch may serve more.
	return c
}

// recalledCacheCheck returns the check of a cache that may have served an earlier recorder. Whether that recorder had a
// reason to distrust it is not known, and neither is how far back the cache can be watched. Only the versions on record
// are known to have been served. If there are none, recalledCacheCheck returns nil.
func recalledCacheCheck(newestRevision uint64) *cacheCheck {
	if newestRevision == 0 {
		return nil
	}
	now := time.Now()
	return &cacheCheck{
		cacheWindow: cacheWindow{acceptedRevision: math.MaxUint64}, newestRevision: newestRevision, fork: &fork{}, onRecord: true,
		watchableRevision: newestRevision, watchableAt: now.Add(-2 * minWindow), compareAt: now.Add(comparedWithin),
	}
}

// listSource says where a trusted list comes from.
type listSource int

const (
	fromUncontestedCache listSource = iota // nothing speaks against the cache
	fromEtcd                               // there is no cache: lists and watches come from etcd
	fromNewCache                           // the cache began in the new history
)

// check returns an error as long as a list may come from a cache that began in the old history.
func (c *cacheCheck) check(ctx context.Context, a *asker, listed uint64) (listSource, error) {
	if listed < c.newestRevision {
		return fromNewCache, nil
	}
	p, err := c.fork.find(ctx)
	if err != nil {
		return fromUncontestedCache, err
	}
	if !c.onRecord && (p.nothingOld() || !c.everRefused && p.isNew(c.acceptedAt)) {
		return fromUncontestedCache, nil // No process, or no watch of the stream, was served anything of the old history.
	}
	if !c.earliestBeginAt.IsZero() && !p.nothingOld() && p.isNew(c.earliestBeginAt) {
		return fromNewCache, nil // The cache began when the new history was there.
	}
	server, watches := a.watcher()
	if !watches {
		return fromUncontestedCache, nil
	}
	etcdRevision, err := a.etcdRevision(ctx)
	if err != nil {
		return fromUncontestedCache, err
	}
	for _, begun := range []func() (bool, error){
		func() (bool, error) { return c.beganAfterFork(ctx, server) },
		func() (bool, error) { return c.refusesOldRevision(ctx, server, c.oldCacheRevision(p.shared())) },
	} {
		if isNew, err := begun(); isNew || err != nil {
			return fromNewCache, err
		}
	}
	if a.uncached(ctx) {
		return fromEtcd, nil
	}
	// This cache can be watched from now-1. That stays true if the comparison fails.
	c.watchableRevision, c.watchableAt = max(c.watchableRevision, etcdRevision-min(etcdRevision, 1)), time.Now()
	return fromUncontestedCache, c.compare(ctx, a)
}

// compare returns an error unless the cache is shown to have what etcd has. It compares the two when that is due.
func (c *cacheCheck) compare(ctx context.Context, a *asker) error {
	if !time.Now().Before(c.compareAt) {
		equal, err := a.listMatchesEtcd(ctx)
		if equal {
			return nil
		}
		c.compareAt = time.Now().Add(compareAgainAfter)
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("the list of %s may come from a watch cache from before the rollback: restart the API server", a.name)
}

// beganAfterFork reports whether the cache certainly began in the new history. It did if it began after a version
// of the old history was served, and can be watched from before that version: etcd was then behind that version.
func (c *cacheCheck) beganAfterFork(ctx context.Context, server cache.WatcherWithContext) (bool, error) {
	newest := c.fork.newestBefore(c.earliestBeginAt)
	if newest == 0 {
		return false, nil
	}
	refusal, err := watchFrom(ctx, server, newest-1, acceptedAfter, none)
	return err == nil && refusal == nil, err
}

// refusesOldRevision reports whether the cache refuses a revision from which the old cache could certainly be
// watched. Then it is another cache, which began later.
func (c *cacheCheck) refusesOldRevision(ctx context.Context, server cache.WatcherWithContext, from uint64) (bool, error) {
	refusal, err := watchFrom(ctx, server, from, acceptedAfter, none)
	switch {
	case refusal == nil || err != nil:
		return false, err
	case from != c.watchableRevision || time.Since(c.watchableAt) < minWindow:
		return true, nil
	case c.watchableAt.IsZero():
		return false, nil
	}
	return droppedNothing(ctx, server, refusal)
}

// oldestWatched matches the oldest revision from which a watch cache can be watched. The cache names it when it
// refuses an older one. It is the revision at which the cache began. Once the cache has dropped an event, it is the
// revision just before its oldest event, and the cache has at least minWindowEvents events then (getAllEventsSinceLocked
// in apiserver's watch_cache.go).
var oldestWatched = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// droppedNothing reports whether a cache has all events since it began. Then a refused revision is from before its
// begin.
func droppedNothing(ctx context.Context, server cache.WatcherWithContext, refusal error) (bool, error) {
	found := oldestWatched.FindStringSubmatch(refusal.Error())
	if found == nil {
		return false, nil
	}
	oldest, err := strconv.ParseUint(found[1], 10, 64)
	if err != nil {
		return false, err
	}
	first, events := uint64(0), 0
	refusal, err = watchFrom(ctx, server, oldest, nextEventWithin, func(revision uint64) (more bool) {
		if events++; events == 1 {
			first = revision
		}
		return first == oldest+1 && events < minWindowEvents
	})
	return err == nil && refusal == nil && (first != oldest+1 || events < minWindowEvents), err
}

// oldCacheRevision returns a revision from which the old cache can certainly be watched. If possible, both histories
// have that revision. Then a cache that began after the rollback cannot be watched from it.
func (c *cacheCheck) oldCacheRevision(shared uint64, sharedAt time.Time) uint64 {
	few := len(c.recentRevisions) < minWindowEvents || c.recentRevisions[0] < shared
	if shared > c.acceptedRevision && (few || time.Since(sharedAt) < minWindow) {
		return shared - 1
	}
	return c.watchableRevision
}

// watchFrom visits the revisions of a watch. It ends when visit returns false, or when the watch is quiet for some
// time. If the server can no longer be watched from there, refusal is its answer.
func watchFrom(ctx context.Context, server cache.WatcherWithContext, from uint64, quiet time.Duration, visit func(revision uint64) (more bool)) (refusal, err error) {
	if err = visitWatch(ctx, server, from, quiet, visit); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return err, nil
	}
	if err != nil {
		err = fmt.Errorf("check whether the API server's cache is a new one: %w", err)
	}
	return nil, err
}

func visitWatch(ctx context.Context, server cache.WatcherWithContext, from uint64, quiet time.Duration, visit func(revision uint64) (more bool)) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	w, err := server.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatUint(from, 10)})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case served, ok := <-w.ResultChan():
			if !ok {
				return fmt.Errorf("the watch from resource version %d: %w", from, io.ErrUnexpectedEOF) // The watch may have been cut before it delivered anything.
			}
			revision, err := revisionOf(served)
			if err != nil || !visit(revision) {
				return err
			}
		case <-time.After(quiet):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// revisionOf returns the revision of an event. If the event carries an error, revisionOf returns that error.
func revisionOf(served watch.Event) (uint64, error) {
	if served.Type == watch.Error {
		return 0, apierrors.FromObject(served.Object)
	}
	metadata, err := meta.Accessor(served.Object)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(metadata.GetResourceVersion(), 10, 64)
}

// none visits no event.
func none(uint64) (more bool) { return false }
