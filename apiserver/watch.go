package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

const (
	// bookmarkEvery and the default of a watch's end are the API server's.
	bookmarkEvery  = time.Minute
	minimumTimeout = 30 * time.Minute
)

// A watching is one open watch.
type watching struct {
	*call
	position string // where the resource is at the instant
	after    history.Point
	initial  bool // what is there comes first
	closing  bool // the bookmark that ends the initial events is asked for
	stream   eventStream
}

func (c *call) watch(w http.ResponseWriter, r *http.Request) error {
	select {
	case c.at.cluster.watches <- struct{}{}:
		defer func() { <-c.at.cluster.watches }()
	default:
		return apierrors.NewTooManyRequests("too many watches are open: --max-watches bounds them", 1)
	}
	open, err := c.begin(r.Context())
	if err != nil {
		return err
	}
	timeout := time.Duration(float64(minimumTimeout) * (1 + rand.Float64()))
	if s := c.options.TimeoutSeconds; s != nil && *s > 0 {
		timeout = time.Duration(*s) * time.Second
	}
	return serveEvents(w, r, func(ctx context.Context, stream eventStream) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		open.stream = stream
		if err := open.run(ctx); err != nil && ctx.Err() == nil {
			_ = open.fail(err)
		}
	})
}

// begin finds from where a watch goes on. Errors that it returns are answers; later ones are ERROR events.
func (c *call) begin(ctx context.Context) (*watching, error) {
	position, err := c.at.position(ctx, c.resource)
	if err != nil {
		return nil, err
	}
	o := &c.options
	open := &watching{call: c, position: position, after: c.at.point}
	open.initial = o.SendInitialEvents != nil && *o.SendInitialEvents
	open.closing = open.initial && o.AllowWatchBookmarks
	rv := o.ResourceVersion
	if rv == "" || rv == "0" {
		return open, nil
	}
	if err := c.reached(rv, position); err != nil {
		return nil, err
	}
	if open.initial || !before(rv, position) {
		return open, nil
	}
	if err := c.crosses(ctx, rv); err != nil {
		return nil, err
	}
	open.after, err = c.at.cluster.record.Resolve(ctx, history.AtRV(rv), history.Scope{Streams: c.resource.scope.Streams})
	if err != nil {
		return nil, unresolved(err)
	}
	return open, nil
}

// crosses refuses a watch over a gap that a list closed: the rows of that list are in the list's order.
func (c *call) crosses(ctx context.Context, rv string) error {
	gaps, err := c.at.cluster.record.Gaps(ctx, history.Scope{Streams: c.resource.scope.Streams})
	if err != nil {
		return unavailable(err)
	}
	for i := range gaps {
		g := &gaps[i]
		if g.Outcome == history.OutcomeResumed || g.ToAt.IsZero() || g.ToAt.After(c.at.point.Time) || g.ToRV == "" || !before(rv, g.ToRV) {
			continue
		}
		return apierrors.NewResourceExpired("too old resource version: " + rv + ": a gap in the record ends at " + g.ToRV + ", where " + c.resource.GroupResource().String() + " were listed again. List, and watch from there.")
	}
	return nil
}

// run sends what there is up to the instant, then bookmarks until the watch ends.
func (o *watching) run(ctx context.Context) error {
	if o.initial {
		if err := o.sendInitial(ctx); err != nil {
			return err
		}
	} else if err := o.sendVersions(ctx); err != nil {
		return err
	}
	if err := o.stream.flush(); err != nil {
		return err
	}
	if !o.options.AllowWatchBookmarks {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(bookmarkEvery)
	defer ticker.Stop()
	for skip := o.closing; ; skip = false {
		if !skip {
			if err := errors.Join(o.bookmark(ctx, false), o.stream.flush()); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (o *watching) sendInitial(ctx context.Context) error {
	all, err := o.at.state(ctx, o.resource, o.namespace)
	if err != nil {
		return err
	}
	for e := range o.selected(all.Range(o.namespace, "")) {
		if err := o.send(ctx, watch.Added, e); err != nil {
			return err
		}
	}
	if o.closing {
		return o.bookmark(ctx, true)
	}
	return nil
}

// sendVersions sends what followed the resource version, up to the instant.
func (o *watching) sendVersions(ctx context.Context) error {
	scope := o.resource.scope
	scope.Namespace = o.namespace
	from, to := o.after.Sure(scope)+1, o.at.point.Seq
	if from > to {
		return nil
	}
	change := prepare(o.resource.stored)
	for v, err := range o.at.cluster.record.Versions(ctx, history.Query{Scope: scope, FromSeq: from, ToSeq: to}) {
		if err != nil {
			return unresolved(err)
		}
		if o.after.Includes(&v.Delta) {
			continue
		}
		kind, doc, err := v.Event(func(_, _ string, doc patch.Doc) (bool, error) { return doc != nil && o.selects.Matches(doc), nil })
		if err != nil {
			return err
		}
		if kind == "" {
			continue
		}
		if change != nil {
			if doc, err = change(doc); err != nil {
				return err
			}
		}
		e := &state.Entry{Namespace: v.Namespace, Name: v.Name}
		e.APIVersion, e.Body = state.Split(doc)
		if err := o.send(ctx, kind, e); err != nil {
			return err
		}
	}
	return nil
}

func (o *watching) send(ctx context.Context, kind watch.EventType, e *state.Entry) error {
	body, err := o.form.one(ctx, e)
	if err != nil {
		return err
	}
	return o.stream.send(kind, body)
}

// bookmark sends an object of the resource's own kind: a reflector drops any other.
func (o *watching) bookmark(ctx context.Context, ends bool) error {
	mark := metav1.ObjectMeta{ResourceVersion: o.position}
	if ends {
		mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	text, err := o.resource.empty(mark)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	e := &state.Entry{APIVersion: o.resource.Kind.GroupVersion().String()}
	_, e.Body = state.Split(text)
	return o.send(ctx, watch.Bookmark, e)
}

// empty is an object of the kind that has metadata only. Like the API server's, one of its own kinds comes out of the internal version.
func (s *served) empty(metadata metav1.ObjectMeta) ([]byte, error) {
	if !legacyscheme.Scheme.Recognizes(s.Kind) {
		return json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metadata})
	}
	object, err := legacyscheme.Scheme.New(s.Kind.GroupKind().WithVersion(runtime.APIVersionInternal))
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(metadata.ResourceVersion)
	accessor.SetAnnotations(metadata.Annotations)
	return runtime.Encode(legacyscheme.Codecs.LegacyCodec(s.Kind.GroupVersion()), object)
}

// errGone says that the client is gone.
var errGone = errors.New("the client is gone")

// fail ends the watch with an ERROR event.
func (o *watching) fail(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	body, err := statusJSON(wire.Status(err))
	if err != nil {
		return err
	}
	return o.stream.send(watch.Error, body)
}
