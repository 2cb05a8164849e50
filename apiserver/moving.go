package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/apiserver/internal/feed"
)

// A moving is a root whose instant moves: that of a session, or the end of the record. Its feed says where it is.
type moving struct {
	cluster *cluster
	feed    *feed.Feed
	end     *end // of the record, if the root is always there; else nil
	watches atomic.Int64
}

// newFeed gives the deltas of the record to watches.
func (c *cluster) newFeed() *feed.Feed {
	return feed.New(feed.Record{Deltas: c.record, Commits: c.record.Commits()}, feed.Options{})
}

// newMoving makes a root at seq 0: its feed brings it to where it begins. live is one at the end of the record.
func (c *cluster) newMoving(live bool) *moving {
	m := &moving{cluster: c, feed: c.newFeed()}
	if live {
		m.end = newEnd(m)
	}
	return m
}

// open is how many watches are open.
func (m *moving) open() int { return int(m.watches.Load()) }

// serve answers a request whose path has no prefix, with the instant of now. An error that it returns is the answer.
func (m *moving) serve(w http.ResponseWriter, r *http.Request) error {
	at, err := m.instantOf(r)
	if err != nil {
		return err
	}
	if m.end == nil {
		return at.serve(w, r)
	}
	return m.end.serve(w, r, at)
}

// instantOf is the instant of now, but that of its first page for a list that goes on.
func (m *moving) instantOf(r *http.Request) (*instant, error) {
	at, err := m.now(r.Context())
	if err != nil {
		return nil, err
	}
	if seq := continuedSeq(r); seq > 0 && seq < at.point.Seq {
		return m.instant(r.Context(), seq)
	}
	return at, nil
}

// now is the cluster where the feed is.
func (m *moving) now(ctx context.Context) (*instant, error) {
	if m.end != nil {
		return m.end.now(ctx)
	}
	return m.instant(ctx, m.feed.Seq())
}

// instant is the cluster at a seq where the feed has been.
func (m *moving) instant(ctx context.Context, seq int64) (*instant, error) {
	if m.end != nil {
		if at := m.end.kept(seq); at != nil {
			return at, nil
		}
	}
	at, err := m.cluster.instant(ctx, seq)
	if err != nil {
		return nil, err
	}
	own := *at
	own.moving, own.feed = m, m.feed
	return &own, nil
}

// continuedSeq is the seq that a continue token names; 0 if there is none. Its first use finds out whether it is a token of
// this server.
func continuedSeq(r *http.Request) int64 {
	text := r.URL.Query().Get("continue")
	if text == "" {
		return 0
	}
	var t token
	if raw, err := base64.RawURLEncoding.DecodeString(text); err != nil || json.Unmarshal(raw, &t) != nil {
		return 0
	}
	return t.Seq
}

// isTooLarge reports whether a resource version was asked for that had not been reached.
func isTooLarge(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeResourceVersionTooLarge })
}
