package recorder

import (
	"context"
	"crypto/sha256"
	"errors"
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

	"github.com/kuberewind/kuberewind/internal/paging"
)

// An API server that was not restarted with its etcd goes on with the watch cache that it has: it holds what was undone, lacks what the new
// history wrote meanwhile, and, from where the new history has passed the old one, follows it all the same, so that nothing that it says of
// what is newest is wrong. Such a cache is told from one that was begun since by how far back it can be watched.

const (
	// watchedBack is for how long, at least, a watch cache can be watched back: API servers keep the events of 75 seconds, whatever
	// there are of them, and the newest eventsBack in any case.
	watchedBack = time.Minute
	eventsBack  = 100
	// quietFor is how long what a watch cache has for a watch takes to come at most.
	quietFor = 2 * time.Second
	// uncachedTimeout is less than the three seconds for which a watch cache waits for what is to come; etcd is asked and answers at once.
	uncachedTimeout = 2 * time.Second
	// checkedAfter is how long it takes at most until an API server has compared its caches with etcd, and, where one differs, answers
	// lists at exact resource versions from etcd: every five minutes, and up to half as much.
	checkedAfter = 8 * time.Minute
	// checkedAgain is how long after a comparison that found no proof the next one comes: it takes two whole lists.
	checkedAgain = time.Minute
)

// doubt is what is known of the watch cache of a stream that has left a history.
type doubt struct {
	window
	past   uint64 // the newest that it has served: it never goes back behind that
	parted *parted
	// mark is where it could be watched from, and when that was seen.
	mark   uint64
	marked time.Time
	check  time.Time // when to compare it with etcd
}

// doubtLocked is nil where the cache has served nothing to this process: a list is then believed if nothing speaks against it.
func (c *claims) doubtLocked(p *parted) *doubt {
	c.cached.settle(c.opened)
	if c.cached.reach == 0 {
		return nil
	}
	past, now := max(c.position, c.newestLocked().revision), time.Now()
	d := &doubt{window: c.cached, past: past, parted: p, mark: past, marked: now, check: now.Add(checkedAfter)}
	if d.anew {
		d.reach, d.marked = math.MaxUint64, time.Time{} // From where the present cache can be watched is not known.
	}
	d.recent = slices.Clone(d.recent) // The watch that is open may serve more.
	return d
}

// doubtOfRecordLocked is that of a stream which a recorder before this one has left waiting for a list that can be trusted: whether it had reason to wait is
// not known, and not how far back the cache can be watched, only that it served what is on record.
func (c *claims) doubtOfRecordLocked() *doubt {
	past, now := max(c.position, c.recorded), time.Now()
	if past == 0 {
		return nil
	}
	return &doubt{
		window: window{reach: math.MaxUint64, later: true}, past: past, parted: &parted{until: now},
		mark: past, marked: now.Add(-2 * watchedBack), check: now.Add(checkedAfter),
	}
}

// renewed returns an error while what is listed may come from a cache that was begun in the history that is no more.
func (c *claims) renewed(ctx context.Context, listed uint64) error {
	c.all.mu.Lock()
	d := c.doubt
	var p parted
	if d != nil {
		p = *d.parted
	}
	c.all.mu.Unlock()
	if d == nil || listed < d.past {
		return nil
	}
	if p.until.IsZero() || !d.later && !d.began.Before(p.until) {
		return nil // Nothing of the old history was served to this process, or to the stream.
	}
	if !d.begins.IsZero() && !d.begins.Before(p.until) {
		return nil // It was begun when the new history was there.
	}
	server, watches := c.in("").(cache.WatcherWithContext)
	if !watches {
		return nil
	}
	now, err := c.trueNow(ctx)
	if err != nil {
		return err
	}
	if newer, err := d.begunSince(ctx, server, p.trail); newer || err != nil {
		return err
	}
	anew, err := d.begunAnew(ctx, server, d.from(p.common))
	if err != nil {
		return err
	}
	if anew || c.uncached(ctx) {
		return nil
	}
	// It is known now that it can be watched from there, or from then on, whatever a comparison says.
	d.mark, d.marked = max(d.mark, now-min(now, 1)), time.Now()
	if !time.Now().Before(d.check) {
		equal, err := c.agrees(ctx)
		if equal {
			return nil
		}
		d.check = time.Now().Add(checkedAgain)
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("the API server answers for %s from a cache that may be of the history that is no more: restart it", c.name)
}

// begunSince reports whether the cache was begun in the new history for certain: after something was served of the old one, and, as it can be watched
// from before that, where etcd was behind it.
func (d *doubt) begunSince(ctx context.Context, server cache.WatcherWithContext, trail []footprint) (bool, error) {
	var newest uint64
	for _, f := range trail {
		if f.at.Before(d.begins) {
			newest = max(newest, f.revision)
		}
	}
	if newest == 0 {
		return false, nil
	}
	refusal, err := watchFrom(ctx, server, newest-1, opensFor, none)
	return err == nil && refusal == nil, err
}

// begunAnew reports whether the cache was begun after it could be watched from a revision for certain, which it refuses then.
func (d *doubt) begunAnew(ctx context.Context, server cache.WatcherWithContext, from uint64) (bool, error) {
	refusal, err := watchFrom(ctx, server, from, opensFor, none)
	switch {
	case refusal == nil || err != nil:
		return false, err
	case from != d.mark || time.Since(d.marked) < watchedBack:
		return true, nil
	case d.marked.IsZero():
		return false, nil
	}
	return forgotNothing(ctx, server, refusal)
}

// oldestWatched is how a watch cache says, to who asks for less, from where it can be watched: from the revision at which it was begun or, once it has forgotten an
// event, from just before the oldest that it has (getAllEventsSinceLocked in apiserver's watch_cache.go). It has eventsBack then.
var oldestWatched = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// forgotNothing reports whether a cache has all events since it was begun, so that what it refuses is from before that.
func forgotNothing(ctx context.Context, server cache.WatcherWithContext, refusal error) (bool, error) {
	found := oldestWatched.FindStringSubmatch(refusal.Error())
	if found == nil {
		return false, nil
	}
	oldest, err := strconv.ParseUint(found[1], 10, 64)
	if err != nil {
		return false, err
	}
	first, events := uint64(0), 0
	refusal, err = watchFrom(ctx, server, oldest, quietFor, func(revision uint64) (more bool) {
		if events++; events == 1 {
			first = revision
		}
		return first == oldest+1 && events < eventsBack
	})
	return err == nil && refusal == nil && (first != oldest+1 || events < eventsBack), err
}

// from is a revision from which the old cache can be watched for certain, and one that was begun since, if possible, cannot: it would have
// to be one that both histories share.
func (d *doubt) from(common footprint) uint64 {
	few := len(d.recent) < eventsBack || d.recent[0] < common.revision
	if common.revision > d.reach && (few || time.Since(common.at) < watchedBack) {
		return common.revision - 1
	}
	return d.mark
}

// watchFrom visits the revisions that a watch gives, as long as it is told to and until it is quiet for some time. The refusal is what the server says if it
// cannot be watched from there any more.
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

// uncached reports whether it is certain that lists come from etcd: that says at once that it has not come to what is asked for, and a cache
// waits, and has it asked for again.
func (c *claims) uncached(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, uncachedTimeout)
	defer cancel()
	_, err := c.in("").ListWithContext(ctx, metav1.ListOptions{
		Limit: 1, ResourceVersion: strconv.FormatInt(math.MaxInt64, 10), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	var status apierrors.APIStatus
	return isAhead(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.RetryAfterSeconds == 0
}

// agrees reports whether a list is what a list at exactly its resource version is, which comes from etcd where the API server knows that its
// cache is not to be trusted, or always did so.
func (c *claims) agrees(ctx context.Context) (bool, error) {
	at, cached, err := c.digest(ctx, metav1.ListOptions{Limit: comparePage})
	if err != nil {
		return false, err
	}
	_, exact, err := c.digest(ctx, metav1.ListOptions{Limit: comparePage, ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	return cached == exact, err
}

// digest is that of what a list holds, page by page.
func (c *claims) digest(ctx context.Context, options metav1.ListOptions) (at string, digest [sha256.Size]byte, err error) {
	hash := sha256.New()
	var pages paging.Guard
	for {
		list, err := c.in("").ListWithContext(ctx, options)
		if err != nil {
			return "", digest, fmt.Errorf("list %s to compare: %w", c.name, err)
		}
		page, err := meta.ListAccessor(list)
		if err != nil {
			return "", digest, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return "", digest, err
		}
		for _, item := range items {
			o, err := meta.Accessor(item)
			if err != nil {
				return "", digest, err
			}
			fmt.Fprintf(hash, "%s/%s %s %s\n", o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion())
		}
		if at = page.GetResourceVersion(); page.GetContinue() == "" {
			return at, [sha256.Size]byte(hash.Sum(nil)), nil
		}
		if err := pages.Next(page.GetContinue()); err != nil {
			return "", digest, fmt.Errorf("list %s to compare: %w", c.name, err)
		}
		options = metav1.ListOptions{Limit: options.Limit, Continue: page.GetContinue()}
	}
}
