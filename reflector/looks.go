package reflector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/paging"
)

const (
	// countsAtOnce is how many lists of one object are requested at a time.
	countsAtOnce = 4
	// recoverBytes bounds what one attempt reads: a few dozen lists of a thousand objects.
	recoverBytes = 512 << 20
)

// errEnoughRead ends an attempt that has moved the position: the next goes on from there.
var errEnoughRead = fmt.Errorf("the lists of one attempt weigh more than %d bytes", recoverBytes)

// recovery is one attempt to recover the revisions after from, up to to.
type recovery struct {
	r        *recoverer
	from, to uint64
	quiet    bool     // a look at a quiet stream
	points   []uint64 // the revisions that may be of this resource, in order
	counts   []int64  // the number of objects at from and at each point

	bytes    int64
	versions int
	requests atomic.Int64
}

func (c *recovery) report(complete bool) Recovery {
	return Recovery{
		From: strconv.FormatUint(c.from, 10), To: strconv.FormatUint(c.to, 10), Revisions: len(c.points),
		Requests: int(c.requests.Load()), Versions: c.versions, Complete: complete,
	}
}

// deliverChanges delivers the changes at the points.
func (c *recovery) deliverChanges(ctx context.Context) error {
	if nothing, err := c.nothingHappened(ctx); nothing || err != nil {
		return err
	}
	first, err := c.snapshotAt(ctx, c.from)
	if err != nil {
		return err
	}
	last, err := c.snapshotAt(ctx, c.points[len(c.points)-1], first)
	if err != nil {
		return err
	}
	return c.between(ctx, 0, first, len(c.points), last)
}

// nothingHappened reports whether it is proved that nothing happened at the points.
//
// In etcd, each write has a revision of its own, except for deletes by one lease. So each object that was created or
// deleted at a point changes the number of objects, which a list of one object shows. If that number is the same at all
// points, nothing was created or deleted, not even for a moment. If in addition no object is newer than from, nothing
// was updated either.
func (c *recovery) nothingHappened(ctx context.Context) (bool, error) {
	if len(c.points) == 0 {
		return true, nil
	}
	c.counts = make([]int64, len(c.points)+1)
	if err := c.countAt(ctx, 0); err != nil {
		return false, err // Etcd forgets the oldest revision first: no other request is needed.
	}
	newer, err := c.hasNewer(ctx)
	if err != nil {
		return false, err
	}
	if err := c.countPoints(ctx); err != nil {
		return false, err
	}
	if c.r.place.provisional && c.counts[0] != 0 {
		return false, &unrecoverable{fmt.Sprintf("there were objects at the start, resource version %d", c.from)}
	}
	return !newer && c.sameCounts(0, len(c.points)), nil
}

// between delivers the changes after place a, up to place b. Place 0 is from, and the others are the points.
func (c *recovery) between(ctx context.Context, a int, before snapshot, b int, after snapshot) error {
	if b == a+1 {
		return c.deliverRevision(before, after, strconv.FormatUint(c.points[b-1], 10))
	}
	if c.sameCounts(a, b) && before.equal(after) {
		return nil
	}
	middle := (a + b) / 2
	between, err := c.snapshotAt(ctx, c.points[middle-1], before, after)
	if err != nil {
		return err
	}
	if err := c.between(ctx, a, before, middle, between); err != nil {
		return err
	}
	return c.between(ctx, middle, between, b, after)
}

// sameCounts reports whether the number of objects was the same at all places from a to b.
func (c *recovery) sameCounts(a, b int) bool {
	for _, n := range c.counts[a : b+1] {
		if n < 0 || n != c.counts[a] {
			return false
		}
	}
	return true
}

// countPoints counts the objects at the points.
func (c *recovery) countPoints(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(countsAtOnce)
	for i := range c.points {
		g.Go(func() error { return c.countAt(ctx, i+1) })
	}
	return g.Wait()
}

// countAt counts the objects at a place: place 0 is from, the others are the points. If the server does not give the
// number, the count is -1, and every point is looked at.
func (c *recovery) countAt(ctx context.Context, place int) error {
	revision := c.from
	if place > 0 {
		revision = c.points[place-1]
	}
	p, err := c.askExactly(ctx, revision, metav1.ListOptions{Limit: 1})
	switch {
	case err != nil:
		return err
	case p.next == "":
		c.counts[place] = int64(len(p.items))
	case p.remaining == nil:
		c.counts[place] = -1
	default:
		c.counts[place] = int64(len(p.items)) + *p.remaining
	}
	return nil
}

// hasNewer reports whether an object at the last point is newer than from.
func (c *recovery) hasNewer(ctx context.Context) (newer bool, err error) {
	position := strconv.FormatUint(c.from, 10)
	err = c.eachPage(ctx, c.points[len(c.points)-1], func(items []any) error {
		for _, item := range items {
			metadata, err := c.r.delivery.expected.metadata(item.(runtime.Object))
			if err != nil {
				return err
			}
			newer = newer || delta.Passes(metadata.GetResourceVersion(), position)
		}
		return nil
	})
	return newer, err
}

// snapshot holds the objects of a resource at one revision.
type snapshot map[identity]runtime.Object

func (s snapshot) identities() []identity {
	return slices.SortedFunc(maps.Keys(s), func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
	})
}

func (s snapshot) equal(other snapshot) bool {
	return maps.EqualFunc(s, other, func(a, b runtime.Object) bool { return resourceVersionOf(a) == resourceVersionOf(b) })
}

// snapshotAt returns the objects of the resource at a revision. It shares equal versions with the other snapshots.
func (c *recovery) snapshotAt(ctx context.Context, revision uint64, others ...snapshot) (snapshot, error) {
	held := snapshot{}
	err := c.eachPage(ctx, revision, func(items []any) error {
		for _, item := range items {
			object := item.(runtime.Object)
			metadata, err := c.r.delivery.expected.metadata(object)
			if err != nil {
				return err
			}
			id := identityOf(metadata)
			for _, other := range others {
				if known, ok := other[id]; ok && resourceVersionOf(known) == metadata.GetResourceVersion() {
					object = known
				}
			}
			held[id] = object
		}
		return nil
	})
	return held, err
}

// eachPage lists the resource at a revision.
func (c *recovery) eachPage(ctx context.Context, revision uint64, do func(items []any) error) error {
	options := metav1.ListOptions{Limit: c.r.source.pages.limit()}
	p, err := c.askExactly(ctx, revision, options)
	var pages paging.Guard
	for {
		if err != nil {
			return err
		}
		if err := do(p.items); err != nil {
			return err
		}
		if c.bytes += p.bytes; c.bytes > recoverBytes && c.versions > 0 {
			return errEnoughRead
		} else if c.bytes > recoverBytes {
			return &unrecoverable{fmt.Sprintf("the lists weigh more than %d bytes", recoverBytes)}
		}
		if p.next == "" {
			return nil
		}
		if err := pages.Next(p.next); err != nil {
			return &unrecoverable{fmt.Sprintf("a list at exactly %d: %v", revision, err)}
		}
		options.Continue = p.next
		p, err = c.ask(ctx, options)
		if err == nil && p.rv != strconv.FormatUint(revision, 10) {
			return &unrecoverable{fmt.Sprintf("a list at exactly %d went on at %q", revision, p.rv)}
		}
	}
}

// askExactly requests the first page of a list at a revision.
func (c *recovery) askExactly(ctx context.Context, revision uint64, options metav1.ListOptions) (page, error) {
	options.ResourceVersion = strconv.FormatUint(revision, 10)
	options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	p, err := c.ask(ctx, options)
	if err == nil && p.rv != options.ResourceVersion {
		return page{}, &unrecoverable{fmt.Sprintf("asked for a list at exactly %d, the server gave one at %q", revision, p.rv)}
	}
	return p, err
}

// afford returns nil if another request may be made. A look that may make no more comes again in its turn.
func (c *recovery) afford() error {
	switch {
	case c.quiet && !c.r.options.AllowLook():
		return errManyLooks
	case !c.quiet && !c.r.options.AllowRecovery():
		return &unrecoverable{"the recoveries of all streams have used up their requests"}
	}
	return nil
}

func (c *recovery) ask(ctx context.Context, options metav1.ListOptions) (page, error) {
	if err := ctx.Err(); err != nil {
		return page{}, err // Such a request would count against the budget of all streams.
	}
	if c.r.timeline.proofPending() {
		return page{}, errRolledBack // The revisions are of a history that no longer exists.
	}
	if err := c.afford(); err != nil {
		return page{}, err
	}
	c.requests.Add(1)
	p, err := c.r.source.list(ctx, options)
	switch {
	case kindOf(err) == unusableFailure:
		return page{}, &unrecoverable{err.Error()}
	case err != nil:
		return page{}, err
	}
	if len(p.undecodable) > 0 {
		return page{}, &unrecoverable{undecodableItems(p.undecodable)}
	}
	for _, item := range p.items {
		if _, ok := item.(runtime.Object); !ok {
			return page{}, &unrecoverable{fmt.Sprintf("an item of the list is a %T", item)}
		}
	}
	return p, nil
}

// deliverRevision delivers the changes at one revision. A watch serves a deleted object in its last state, with the
// resource version of its end; so does this.
func (c *recovery) deliverRevision(before, now snapshot, rv string) error {
	for _, id := range before.identities() {
		if _, lives := now[id]; lives {
			continue
		}
		last, err := atResourceVersion(before[id], rv)
		if err != nil {
			return err
		}
		if err := c.deliver(watch.Deleted, last); err != nil {
			return err
		}
	}
	for _, id := range now.identities() {
		kind := watch.Modified
		known, lived := before[id]
		switch {
		case !lived:
			kind = watch.Added
		case resourceVersionOf(known) == resourceVersionOf(now[id]):
			continue
		}
		if at := resourceVersionOf(now[id]); at != rv {
			return &unrecoverable{fmt.Sprintf("a version of resource version %s first shows at %s", at, rv)}
		}
		// The store may change its object, and the next revision is compared with this one.
		if err := c.deliver(kind, now[id].DeepCopyObject()); err != nil {
			return err
		}
	}
	return nil
}

func (c *recovery) deliver(kind watch.EventType, object runtime.Object) error {
	c.versions++
	return c.r.delivery.recovered(watch.Event{Type: kind, Object: object})
}

func resourceVersionOf(object runtime.Object) string {
	metadata, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return metadata.GetResourceVersion()
}
