package session

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kuberewind/kuberewind/apiserver/internal/clock"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
)

// Live is the name of the session that always exists. It is at the end of the record, and cannot be moved.
const Live = "live"

const (
	mostSessions = 32
	mostOfUser   = 8
)

// A Record resolves instants. *history.Record implements it.
type Record interface {
	Resolve(ctx context.Context, at history.Instant, scope history.Scope) (history.Point, error)
	Extent(ctx context.Context) (history.Extent, error)
}

// A Timeline returns the times of deltas and of ends of gaps. history.Timeline implements it.
type Timeline interface {
	Moments(ctx context.Context, after history.Moment, most int) ([]history.Moment, error)
	EndedBy(ctx context.Context, seq int64, at time.Time) (batch int64, err error)
}

// A Root is an API whose instant moves. If the root also passes an end of a gap after the delta, ends is the last commit
// that ended one; else 0.
type Root interface {
	Serve(w http.ResponseWriter, r *http.Request) error
	Jump(to, ends int64)
	Advance(ctx context.Context, to, ends int64) error
	Seq() int64
	Open() int // watches
	Close()    // open watches end
}

// A Cluster is a cluster with sessions.
type Cluster struct {
	Record   Record
	Timeline Timeline
	NewRoot  func() Root // Jump moves it to its first instant.
}

// A Registry holds the sessions of a server.
type Registry struct {
	clusters map[string]Cluster // by UID
	log      *slog.Logger
	ctx      context.Context // of the sessions
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex // protects what follows
	byName map[string]*session
	closed bool
}

// New makes a Registry without sessions. Close ends all its sessions.
func New(clusters map[string]Cluster, log *slog.Logger) *Registry {
	r := &Registry{clusters: clusters, log: log, byName: map[string]*session{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Close ends all sessions.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.running.Wait()
}

// Serve answers a request to a session's root.
func (r *Registry) Serve(w http.ResponseWriter, request *http.Request, cluster, name string) error {
	if s := r.find(name); s != nil && s.cluster == cluster {
		if exit, ok := s.use.enter(); ok {
			defer exit()
			return s.steps.root.Serve(w, request)
		}
	}
	// kubectl requests discovery first, and does not print the message of that answer. It prints warnings.
	wire.Warn(w, r.missing(name))
	return apierrors.NewResourceExpired(r.missing(name))
}

// missing returns the message for an unknown session: how to create it again.
func (r *Registry) missing(name string) string {
	if len(validation.IsDNS1123Label(name)) > 0 {
		name = "NAME"
	}
	return fmt.Sprintf("there is no session %q: a session ends %d minutes after its last request, and when the server ends; \"replay session %s --at INSTANT\" creates it again",
		name, int(idleFor.Minutes()), name)
}

func (r *Registry) find(name string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// list returns all sessions, sorted by name.
func (r *Registry) list() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.byName), func(a, b *session) int { return strings.Compare(a.name, b.name) })
}

// make starts a session at a place.
func (r *Registry) make(name, owner, uid string, c clock.Clock, at *place) (*session, error) {
	s := &session{
		name: name, cluster: uid, owner: owner, log: r.log, use: &use{last: time.Now()}, woken: make(chan struct{}, 1),
		moves: make(chan struct{}, 1), steps: &steps{past: r.clusters[uid]}, clock: c, reached: at.time,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.mayMake(name, owner); err != nil {
		return nil, err
	}
	s.steps.root = r.clusters[uid].NewRoot()
	s.steps.jump(at)
	r.byName[name] = s
	ctx, stop := context.WithCancel(r.ctx)
	s.stop = stop
	r.running.Go(func() {
		defer stop()
		s.run(ctx)
		r.remove(s)
	})
	return s, nil
}

// mayMake returns why a session cannot be made. mu is held.
func (r *Registry) mayMake(name, owner string) error {
	switch {
	case r.closed:
		return apierrors.NewServiceUnavailable("the server is shutting down")
	case r.byName[name] != nil:
		return apierrors.NewConflict(resource, name, fmt.Errorf("another request has just created it: read it, and move it if it is yours"))
	case len(r.byName) >= mostSessions:
		return tooMany("%d sessions are open, the most of a server", mostSessions)
	}
	own := 0
	for _, s := range r.byName {
		if s.owner == owner {
			own++
		}
	}
	if own >= mostOfUser {
		return tooMany("you have %d sessions, the most of a user", mostOfUser)
	}
	return nil
}

// resource is the name of a session in errors.
var resource = schema.GroupResource{Resource: "sessions"}

func tooMany(format string, n int) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf(format, n)+`: end one with "replay session NAME --end"`, 0)
}

func (r *Registry) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName[s.name] == s {
		delete(r.byName, s.name)
	}
}
