package apiserver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/apiserver/internal/feed"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
)

const (
	// bookmarkEvery and minimumTimeout have the API server's defaults.
	bookmarkEvery  = time.Minute
	minimumTimeout = 30 * time.Minute
)

// A watching is one open watch.
type watching struct {
	call     *call
	reader   *feed.Reader
	stream   eventStream
	position string // of the resource at the instant
	from     string // events come after this resource version
	after    history.Point
	initial  bool // send the existing objects first
	closing  bool // the client requested the bookmark that ends the initial events
	listing  bool // a list that closes a gap has begun
}

func (c *call) watch(w http.ResponseWriter, r *http.Request) error {
	select {
	case c.at.cluster.watches <- struct{}{}:
		defer func() { <-c.at.cluster.watches }()
	default:
		return apierrors.NewTooManyRequests("too many watches are open: raise --max-watches to allow more", 1)
	}
	if m := c.at.moving; m != nil {
		defer m.hold()()
	}
	open, err := c.begin(r.Context())
	if err != nil {
		return err
	}
	defer open.reader.Close()
	timeout := time.Duration(float64(minimumTimeout) * (1 + rand.Float64()))
	if s := c.options.TimeoutSeconds; s != nil && *s > 0 {
		timeout = time.Duration(*s) * time.Second
	}
	return serveEvents(w, r, func(ctx context.Context, stream eventStream) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		open.stream = stream
		if err := c.permit.whileAllowed(ctx, open.run); err != nil && ctx.Err() == nil {
			_ = open.fail(err)
		}
	})
}

// begin finds the position from which a watch continues. An error of begin is the HTTP answer; a later error is an ERROR
// event.
func (c *call) begin(ctx context.Context) (*watching, error) {
	scope := c.resource.scope
	scope.Namespace = c.namespace
	reader, err := c.at.feed.Reader(ctx, scope)
	if err != nil {
		return nil, unavailable(err)
	}
	open := &watching{call: c, reader: reader}
	if err := open.begin(ctx); err != nil {
		reader.Close()
		return nil, err
	}
	return open, nil
}

func (o *watching) begin(ctx context.Context) (err error) {
	if m := o.call.at.moving; m != nil && o.call.at.point.Seq != o.reader.Seq() { // the root has moved since the request arrived
		if o.call.at, err = m.now(ctx); err != nil {
			return err
		}
		if err := o.call.permit.allow(ctx, o.call.at.point.Seq); err != nil {
			return err
		}
	}
	if o.position, err = o.call.at.position(ctx, o.call.resource); err != nil {
		return err
	}
	options := &o.call.options
	o.after, o.from = o.call.at.point, o.position
	o.initial = options.SendInitialEvents != nil && *options.SendInitialEvents
	o.closing = o.initial && options.AllowWatchBookmarks
	if rv := options.ResourceVersion; rv != "" && rv != "0" {
		if err := o.beginAt(ctx, rv); err != nil {
			return err
		}
	}
	o.reader.Begin(min(o.after.CompleteUpTo(o.call.resource.scope), o.call.at.point.Seq))
	return nil
}

// beginAt makes the watch continue from a resource version.
func (o *watching) beginAt(ctx context.Context, rv string) error {
	if err := o.call.reached(rv, o.position); err != nil {
		if isTooLarge(err) && o.call.at.moving != nil && o.call.at.moving.end == nil {
			return apierrors.NewResourceExpired("resource version " + rv + " is later than the position of this session, " + o.position + ". List, and watch from there.")
		}
		return err
	}
	if o.initial || !delta.Precedes(rv, o.position) {
		return nil
	}
	if err := o.call.crosses(ctx, rv); err != nil {
		return err
	}
	p, err := o.call.at.cluster.record.Resolve(ctx, history.AtRV(rv), history.Scope{Streams: o.call.resource.scope.Streams})
	if err != nil {
		return unresolved(err)
	}
	o.after, o.from = p, rv
	return o.call.permit.allowVersion(ctx, p, o.call.at.point.Seq)
}

// crosses refuses a watch across a gap that a list closed, because the rows of that list are in the list's order.
func (c *call) crosses(ctx context.Context, rv string) error {
	gaps, err := c.at.cluster.record.Completeness().Gaps(ctx, history.Scope{Streams: c.resource.scope.Streams})
	if err != nil {
		return unavailable(err)
	}
	for i := range gaps {
		g := &gaps[i]
		if g.Outcome == delta.OutcomeResumed || g.ToAt.IsZero() || g.ToAt.After(c.at.point.Time) || g.ToRV == "" || !delta.Precedes(rv, g.ToRV) {
			continue
		}
		return gapEnds(rv, g.ToRV, c.resource)
	}
	return nil
}

func gapEnds(rv, at string, resource *served) error {
	return apierrors.NewResourceExpired("too old resource version: " + rv + ": a gap in the record ends at " + at + ", where " + resource.GroupResource().String() +
		" were listed again. List, and watch from there.")
}
