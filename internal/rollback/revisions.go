package rollback

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

const (
	// keptRevisions bounds how many revisions are kept of one stream: its newest, in 4 MiB at most. A position is no older than a few
	// minutes where recovery has a chance.
	keptRevisions = 1 << 19
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
	// opensFor is how long a watch has been open at least when it will no longer be refused because its position is too old.
	opensFor = time.Second
)

// ListWith says how the stream is listed in a namespace from now on; an empty one means all.
func (c *Stream) ListWith(lister func(namespace string) cache.ListerWithContext) {
	c.ask.lister.Store(&lister)
}

// Saw notes that a version of an object was served.
func (c *Stream) Saw(o *kube.Object, deleted bool) {
	revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	w := witnessOf(o, revision)
	notes, paused := c.claim(w, deleted)
	if notes {
		c.note(w)
	}
	if paused != nil {
		paused.owe()
	}
}

// claim notes whose the revision is, and reports whether the version has to be noted as well. If there was a silence, it gives
// what was served before it.
func (c *Stream) claim(w witness, deleted bool) (notes bool, paused *sample) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.served = time.Now()
	w.at = c.all.served
	c.claimLocked(w.revision)
	c.living.remember(w, deleted)
	c.trust.cached.served(w.revision)
	if c.reversed { // What a watch serves that has not ended yet is of no history that counts.
		return false, nil
	}
	w.deleted = deleted
	f := c.footprintLocked(w, c.all.served)
	if c.sampleLocked(f); deleted {
		return false, nil
	}
	return c.notesLocked(), c.etcd.servedLocked(f)
}

// notesLocked reports whether the next version that the stream is served is to be noted.
func (c *Stream) notesLocked() bool { return !c.reversed && len(c.earlier) == 0 && c.etcd.trail.due() }

// note adds a version to the trail of its etcd.
func (c *Stream) note(w witness) {
	w = w.reduced()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.notesLocked() {
		c.etcd.trail.note(c.footprintLocked(w, time.Now()))
	}
}

func (c *Stream) claimLocked(revision uint64) {
	c.claimed++
	at := len(c.newest)
	if at > 0 && revision <= c.newest[at-1] {
		var known bool
		if at, known = slices.BinarySearch(c.newest, revision); known {
			return
		}
	}
	c.newest = slices.Insert(c.newest, at, revision)
	if len(c.newest) > keptRevisions {
		c.newest = slices.Clone(c.newest[keptRevisions/2:])
	}
}

// withinLocked are the stream's revisions after from, up to to: none where that comes before it.
func (c *Stream) withinLocked(from, to uint64) []uint64 {
	if to <= from {
		return nil
	}
	first, _ := slices.BinarySearch(c.newest, from+1)
	last, _ := slices.BinarySearch(c.newest, to+1)
	return c.newest[first:last]
}

// Reached notes up to where the stream has said what is its.
func (c *Stream) Reached(resourceVersion string) {
	position, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.served = time.Now()
	if position > c.position {
		c.position, c.moved = position, c.all.served
	}
	if c.begin == 0 {
		c.begin = position
	}
}

// Watching notes that a watch has been opened.
func (c *Stream) Watching(resourceVersion string) {
	from, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		from = 0 // opaque versions cannot be compared
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.denied, c.opened = false, time.Now()
	c.trust.cached.opened(from)
}

// Closed notes that it has ended.
func (c *Stream) Closed(err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.trust.cached.closed(c.opened, c.all.served, err)
	c.opened = time.Time{}
}

// Interrupted notes why the stream cannot be followed.
func (c *Stream) Interrupted(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.denied = cause == delta.CauseForbidden || cause == delta.CauseUnauthorized || cause == delta.CauseNotFound
}

// Returned gives a channel that is closed when the server answers again.
func (c *Stream) Returned() <-chan struct{} { return c.all.identity.Returned() }

// asksLocked reports whether the server can be asked for the stream. It cannot for one that is not served any more.
func (c *Stream) asksLocked() bool { return c.reverse != nil && !c.denied }

func (c *Stream) asks() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.asksLocked()
}

var (
	_ reflector.Revisions = (*Stream)(nil)
	_ reflector.History   = (*Stream)(nil)
)

// errBusierComesFurther has a look be made again in its turn.
var errBusierComesFurther = errors.New("a busier stream is about to say which revisions are its")

// Unaccounted implements reflector.Revisions. The busiest stream goes first: what it finds to be its, the others need not
// look at.
func (c *Stream) Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error) {
	if unclaimed, moved := c.mayLearn(from, to); !wait && unclaimed > fewLooks && time.Since(moved) < busierLongWait {
		return nil, errBusierComesFurther
	}
	if wait {
		if err := c.awaitBusier(ctx, from, to); err != nil {
			return nil, err
		}
	}
	trusted, err := c.trusted(ctx, from, to, wait)
	if err != nil {
		return nil, err
	}
	var left []uint64
	for revision := from + 1; revision <= to && len(left) <= limit; revision++ {
		if len(trusted) > 0 && trusted[0] == revision {
			trusted = trusted[1:]
			continue
		}
		left = append(left, revision)
	}
	return left, nil
}

// awaitBusier returns when no busier stream is on its way to say more.
func (c *Stream) awaitBusier(ctx context.Context, from, to uint64) error {
	began := time.Now()
	look := time.NewTicker(busierLook)
	defer look.Stop()
	for {
		limit := busierWait
		unclaimed, moved := c.mayLearn(from, to)
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
// still behind them, it gives 0. A stream is busier if more revisions were its. That order lets no two streams wait for each
// other.
func (c *Stream) mayLearn(from, to uint64) (unclaimed int, moved time.Time) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	busier := false
	for _, other := range c.all.streams {
		if !other.asksLocked() {
			continue
		}
		follows := other.position >= to || !other.opened.IsZero() && time.Since(other.opened) > opensFor
		if !follows && (other.claimed > c.claimed || other.claimed == c.claimed && other.number < c.number && other.claimed > 0) {
			busier = true
			if other.moved.After(moved) {
				moved = other.moved
			}
		}
	}
	if !busier || to <= from {
		return 0, moved
	}
	claimed := 0
	for _, other := range c.all.streams {
		claimed += len(other.withinLocked(from, to))
	}
	return max(0, int(min(to-from, math.MaxInt32))-claimed), moved
}

// proved is up to where etcd has the history in which streams of one etcd were served. It is 0 if etcd has another history, or
// does not know. It looks for the newest version of each stream, beginning with the newest of all. The error is that no
// version has shown it, and that the server did not answer for a stream.
func proved(ctx context.Context, together []*Stream) (revision uint64, failed error) {
	var newest []footprint
	for _, c := range together {
		if w := c.seen(); w.revision != 0 {
			newest = append(newest, footprint{of: c, witness: w})
		}
	}
	slices.SortFunc(newest, func(a, b footprint) int { return cmp.Compare(b.revision, a.revision) })
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

// union gives the revisions of some streams, in order and each once.
func (c *Stream) union(of []*Stream, from, to uint64) []uint64 {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var all []uint64
	for _, other := range of {
		all = append(all, other.withinLocked(from, to)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *Stream) seen() witness {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.living.newest()
}

// claimants are the other streams that have claimed one of the revisions.
func (c *Stream) claimants(from, to uint64) []*Stream {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var others []*Stream
	for _, other := range c.all.streams {
		if other != c && len(other.withinLocked(from, to)) > 0 {
			others = append(others, other)
		}
	}
	return others
}
