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

// An API server that was not restarted with its etcd goes on with its old watch cache. The cache holds what was undone, and
// lacks what the new history wrote meanwhile. But from where the new history has passed the old one, it follows the new one,
// so its newest versions are right. How far back a cache can be watched tells an old one from one that was begun since.

const (
	// minWindow is for how long, at least, a watch cache can be watched back. API servers keep all events of 75 seconds, and
	// the newest minWindowEvents in any case.
	minWindow       = time.Minute
	minWindowEvents = 100
	// nextEventWithin is how long what a watch cache has for a watch takes to come at most.
	nextEventWithin = 2 * time.Second
	// comparedWithin is how long an API server takes at most to compare its caches with etcd: every five minutes, and up to half
	// as much. If a cache differs, lists at exact resource versions come from etcd after that.
	comparedWithin = 8 * time.Minute
	// compareAgainAfter is how long after a comparison that found no proof the next one comes: it takes two whole lists.
	compareAgainAfter = time.Minute
)

// doubt is what is known of the watch cache of a stream that has left a history.
type cacheCheck struct {
	window
	newest uint64 // the newest that it has served: it never goes back behind that
	fork   *fork
	// mark is where it could be watched from, and when that was seen.
	watchable   uint64
	watchableAt time.Time
	compareAt   time.Time // when to compare it with etcd
}

// doubtOf is nil if the cache has served nothing to this process. Then a list is trusted if nothing speaks against it.
func newCacheCheck(cached window, newest uint64, f *fork) *cacheCheck {
	if cached.watchableFrom == 0 {
		return nil
	}
	now := time.Now()
	c := &cacheCheck{window: cached, newest: newest, fork: f, watchable: newest, watchableAt: now, compareAt: now.Add(comparedWithin)}
	if c.refused {
		c.watchableFrom, c.watchableAt = math.MaxUint64, time.Time{} // From where the present cache can be watched is not known.
	}
	c.recent = slices.Clone(c.recent) // The watch that is open may serve more.
	return c
}

// doubtOfRecord is the doubt of a stream that an earlier recorder has left waiting for a list that can be trusted. It is not
// known whether it had reason to wait, or how far back the cache can be watched. Only what is on record is known to have been
// served.
func recalledCacheCheck(newest uint64) *cacheCheck {
	if newest == 0 {
		return nil
	}
	now := time.Now()
	return &cacheCheck{
		window: window{watchableFrom: math.MaxUint64, everRefused: true}, newest: newest, fork: forkBefore(now),
		watchable: newest, watchableAt: now.Add(-2 * minWindow), compareAt: now.Add(comparedWithin),
	}
}

// cacheAge is what is known of the cache from which a list came that can be trusted.
type cacheAge int

const (
	cacheTrusted cacheAge = iota // nothing speaks against it
	cacheAbsent                  // there is none: lists and watches come from etcd
	cacheNew                     // it was begun in the new history
)

// settled returns an error while a list may come from a cache that was begun in the old history.
func (c *cacheCheck) check(ctx context.Context, a *asker, listed uint64) (cacheAge, error) {
	if listed < c.newest {
		return cacheNew, nil
	}
	p, err := c.fork.find(ctx)
	if err != nil {
		return cacheTrusted, err
	}
	if p.nothingOld() || !c.everRefused && p.isNew(c.watchableSince) {
		return cacheTrusted, nil // Nothing of the old history was served to this process, or to the stream.
	}
	if !c.begunAfter.IsZero() && p.isNew(c.begunAfter) {
		return cacheNew, nil // It was begun when the new history was there.
	}
	server, watches := a.watcher()
	if !watches {
		return cacheTrusted, nil
	}
	now, err := a.trueNow(ctx)
	if err != nil {
		return cacheTrusted, err
	}
	for _, begun := range []func() (bool, error){
		func() (bool, error) { return c.beganAfterFork(ctx, server) },
		func() (bool, error) { return c.refusesOldRevision(ctx, server, c.oldRevision(p.shared())) },
	} {
		if isNew, err := begun(); isNew || err != nil {
			return cacheNew, err
		}
	}
	if a.uncached(ctx) {
		return cacheAbsent, nil
	}
	// It is known now that it can be watched from there, or from then on, whatever a comparison says.
	c.watchable, c.watchableAt = max(c.watchable, now-min(now, 1)), time.Now()
	return cacheTrusted, c.compare(ctx, a)
}

// compare returns an error if the cache is not shown to have what etcd has. It compares them when that is due.
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
	return fmt.Errorf("the API server answers for %s from a cache that may be of the history that is no more: restart it", a.name)
}

// begunSince reports whether the cache was certainly begun in the new history. That is so if it was begun after something of
// the old one was served, and can be watched from before that. Etcd was then behind it.
func (c *cacheCheck) beganAfterFork(ctx context.Context, server cache.WatcherWithContext) (bool, error) {
	newest := c.fork.newestBefore(c.begunAfter)
	if newest == 0 {
		return false, nil
	}
	refusal, err := watchFrom(ctx, server, newest-1, acceptedAfter, none)
	return err == nil && refusal == nil, err
}

// begunAnew reports whether the cache refuses a revision from which it could certainly be watched before. Then it was begun
// since.
func (c *cacheCheck) refusesOldRevision(ctx context.Context, server cache.WatcherWithContext, from uint64) (bool, error) {
	refusal, err := watchFrom(ctx, server, from, acceptedAfter, none)
	switch {
	case refusal == nil || err != nil:
		return false, err
	case from != c.watchable || time.Since(c.watchableAt) < minWindow:
		return true, nil
	case c.watchableAt.IsZero():
		return false, nil
	}
	return droppedNothing(ctx, server, refusal)
}

// oldestWatched is how a watch cache says from where it can be watched, when it is asked for less. That is the revision at
// which it was begun. Once it has forgotten an event, it is just before the oldest that it has. It has minWindowEvents events then
// (getAllEventsSinceLocked in apiserver's watch_cache.go).
var oldestWatched = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// forgotNothing reports whether a cache has all events since it was begun. Then what it refuses is from before its begin.
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

// from is a revision from which the old cache can certainly be watched. If possible, it is one that both histories share, from
// which a cache that was begun since cannot be watched.
func (c *cacheCheck) oldRevision(shared uint64, served time.Time) uint64 {
	few := len(c.recent) < minWindowEvents || c.recent[0] < shared
	if shared > c.watchableFrom && (few || time.Since(served) < minWindow) {
		return shared - 1
	}
	return c.watchable
}

// watchFrom visits the revisions that a watch gives, until visit says no more or the watch is quiet for some time. If the
// server cannot be watched from there any more, its answer is the refusal.
func watchFrom(ctx context.Context, server cache.WatcherWithContext, from uint64, quiet time.Duration, visit func(revision uint64) (more bool)) (refusal, err error) {
	if err = visitWatch(ctx, server, from, quiet, visit); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return err, nil
	}
	if err != nil {
		err = fmt.Errorf("look whether the API server's cache was begun anew: %w", err)
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
		case event, ok := <-w.ResultChan():
			if !ok {
				return fmt.Errorf("the watch from resource version %d: %w", from, io.ErrUnexpectedEOF) // It may have been cut before it said anything.
			}
			revision, err := revisionOf(event)
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

// revisionOf is that of an event; the error is one that it tells.
func revisionOf(event watch.Event) (uint64, error) {
	if event.Type == watch.Error {
		return 0, apierrors.FromObject(event.Object)
	}
	metadata, err := meta.Accessor(event.Object)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(metadata.GetResourceVersion(), 10, 64)
}

// none visits no event.
func none(uint64) (more bool) { return false }
