package apiserver

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/discovery"
	"github.com/kuberewind/kuberewind/apiserver/internal/feed"
	"github.com/kuberewind/kuberewind/apiserver/internal/review"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/cohabiting"
)

// An instant is the cluster at a seq. It never changes.
type instant struct {
	cluster   *cluster
	point     history.Point
	revision  int64
	streams   map[schema.GroupResource][]history.Stream // streams whose first list was complete at the instant
	discovery *discovery.Server
	reviews   *review.Server

	positions map[int32]string // resource versions of streams, if they are known
	moving    *moving          // the root that it belongs to; nil for a fixed instant
	feed      *feed.Feed       // serves its watches
}

func newInstant(ctx context.Context, c *cluster, p history.Point, revision int64, streams []history.Stream) (*instant, error) {
	at := &instant{cluster: c, point: p, revision: revision, streams: map[schema.GroupResource][]history.Stream{}}
	at.feed = c.newFeed()
	at.feed.SeekTo(p.Seq, 0)
	if err := at.readStreams(ctx, streams); err != nil {
		return nil, unavailable(err)
	}
	if err := at.discover(ctx, streams); err != nil {
		return nil, unavailable(err)
	}
	at.reviews = review.New(at, review.Options{
		Authorize: at.allow,
		Served: func(resource schema.GroupVersionResource) bool {
			_, ok := at.discovery.Resource(resource)
			return ok
		},
	})
	return at, nil
}

// readStreams finds the streams whose first list was complete at the instant. A stream that began without a list has no gap
// with the cause of a first list.
func (at *instant) readStreams(ctx context.Context, all []history.Stream) error {
	gaps, err := at.cluster.record.Completeness().Gaps(ctx, history.Scope{})
	if err != nil {
		return err
	}
	unlisted := map[int32]bool{}
	for i := range gaps {
		if g := &gaps[i]; g.Cause == delta.CauseFirstList && g.Stream != nil {
			unlisted[g.Stream.ID] = g.ToAt.IsZero() || g.ToAt.After(at.point.Time)
		}
	}
	for _, s := range all {
		if !unlisted[s.ID] && s.Position != "" && !s.StartedAt.After(at.point.Time) {
			at.streams[s.GroupResource()] = append(at.streams[s.GroupResource()], s)
		}
	}
	return nil
}

// A discoveryID identifies the inputs of a discovery.
type discoveryID struct {
	changed, last time.Time // of the documents
	revision      int64
	streams       string
}

// discover reads discovery. If another instant had the same documents and the same streams, discover reuses its discovery.
func (at *instant) discover(ctx context.Context, streams []history.Stream) error {
	c := at.cluster
	id := discoveryID{revision: at.revision}
	var err error
	if id.changed, id.last, err = c.record.Server().DocumentsChanged(ctx, at.point.Time); err != nil {
		return err
	}
	text := new(strings.Builder)
	for i := range streams {
		s := &streams[i]
		fmt.Fprintln(text, s.GroupResource(), s.Version, s.Kind, s.Namespaced, len(at.streams[s.GroupResource()]) > 0)
	}
	id.streams = text.String()
	if known, ok := c.discoveries.Get(id); ok {
		at.discovery = known.(*discovery.Server)
		return nil
	}
	at.discovery, err = discovery.New(ctx, c.record.Server(), at.point.Time, func(resource schema.GroupResource) bool { return len(at.recorded(resource)) > 0 })
	if err == nil {
		c.discoveries.Add(id, at.discovery)
	}
	return err
}

// recorded returns the streams of a resource's objects, possibly under another group.
func (at *instant) recorded(resource schema.GroupResource) []history.Stream {
	for _, group := range cohabiting.With(resource.Group, resource.Resource) {
		if streams := at.streams[schema.GroupResource{Group: group, Resource: resource.Resource}]; len(streams) > 0 {
			return streams
		}
	}
	return nil
}

// serve answers a request whose path has no prefix. If it returns an error, that error is the answer.
func (at *instant) serve(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set(SeqHeader, strconv.FormatInt(at.point.Seq, 10))
	if err := checkTimeout(r); err != nil {
		return err
	}
	if at.reviews.Handles(r) {
		at.reviews.ServeHTTP(w, r)
		return nil
	}
	if review.Impersonates(r) {
		return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("impersonation is only possible in access reviews, as in kubectl auth can-i --as"))
	}
	if at.discovery.Handles(r.URL.Path) {
		at.discovery.ServeHTTP(w, r)
		return nil
	}
	c, err := at.call(r)
	if err != nil {
		return err
	}
	if c == nil {
		return unserved(w, r.URL.Path)
	}
	return c.serve(w, r)
}

// unserved answers a path that the API server did not serve. For its own groups, the API server answers with a Status.
func unserved(w http.ResponseWriter, path string) error {
	group, _, _ := strings.Cut(strings.TrimPrefix(path, "/apis/"), "/")
	if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/") && legacyscheme.Scheme.IsGroupRegistered(group) {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
			Message: "the server could not find the requested resource",
		}}
	}
	wire.Unserved(w)
	return nil
}

// Docs returns the objects of a resource for access reviews.
func (at *instant) Docs(ctx context.Context, resource schema.GroupResource) (iter.Seq2[string, []byte], error) {
	s, ok := at.served(schema.GroupVersionResource{Group: resource.Group, Version: "v1", Resource: resource.Resource})
	if !ok || !s.Recorded {
		return nil, fmt.Errorf("%s: %w", resource, review.ErrNotRecorded)
	}
	s.granted = true // the review checks before whether the caller may list it
	all, err := at.state(ctx, s, "")
	if err != nil {
		return nil, err
	}
	return func(yield func(string, []byte) bool) {
		for _, e := range all.Range("", "") {
			if !yield(e.Key(), e.Doc(s.Kind.Kind)) {
				return
			}
		}
	}, nil
}
