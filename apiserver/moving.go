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

// A moving is a root whose instant moves: a session, or the end of the record. Its feed has the current seq.
type moving struct {
	cluster *cluster
	feed    *feed.Feed
	end     *end // nil for a session
	watches atomic.Int64
}

// newFeed makes a feed that delivers the deltas of the record to watches.
func (c *cluster) newFeed() *feed.Feed {
	return feed.New(feed.Record{Deltas: c.record, Commits: c.record.Commits()}, feed.Options{})
}

// newMoving makes a root at seq 0. Its feed then moves it to its first instant. live selects the root at the end of the
// record.
func (c *cluster) newMoving(live bool) *moving {
	m := &moving{cluster: c, feed: c.newFeed()}
	if live {
		m.end = newEnd(m)
	}
	return m
}

// open returns the number of open watches.
func (m *moving) open() int { return int(m.watches.Load()) }

// serve answers a request whose path has no prefix at the current instant. If it returns an error, that error is the
// answer.
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

// instantOf returns the current instant. For a list that continues, it returns the instant of its first page.
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

// now returns the cluster at the feed's seq.
func (m *moving) now(ctx context.Context) (*instant, error) {
	if m.end != nil {
		return m.end.now(ctx)
	}
	return m.instant(ctx, m.feed.Seq())
}

// instant returns the cluster at a seq where the feed has been.
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

// continuedSeq returns the seq in a continue token, 0 if there is none. It does not verify that this server made the token;
// tokens.read does.
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

// isTooLarge reports whether the error says that a requested resource version has not been reached.
func isTooLarge(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeResourceVersionTooLarge })
}
