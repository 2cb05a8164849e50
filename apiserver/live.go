package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/apiserver/internal/session"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
)

const (
	// liveName is the name of the session at the end of the record.
	liveName = session.Live
	// followEvery is the interval at which the follower reads the head of the record while a watch is open.
	followEvery = 250 * time.Millisecond
	// reachWithin is how long a request waits for a resource version that is not recorded yet.
	reachWithin = 3 * time.Second
)

// An end follows the end of a record, which moves as the recorder commits. Each request reads the head of the record. While
// a watch is open, the follower reads it, too.
type end struct {
	moving *moving
	follow chan struct{} // capacity 1; a watch was opened

	reading sync.Mutex // held while the head is read

	mu      sync.Mutex // protects what follows
	asked   time.Time  // when the head was last read
	at      history.End
	read    time.Time // when the pulse of at was read
	instant *instant  // the instant of at; nil before its first request
	old     *instant  // the previous one
}

func newEnd(m *moving) *end { return &end{moving: m, follow: make(chan struct{}, 1)} }

// newLive makes the root at the end of the record, and starts the follower.
func (c *cluster) newLive() *moving {
	m := c.newMoving(true)
	c.work.Go(func() { m.end.run(c.ctx) })
	return m
}

// hold counts an open watch until the caller calls release. While watches are open, the follower reads the head.
func (m *moving) hold() (release func()) {
	m.watches.Add(1)
	if m.end != nil {
		select {
		case m.end.follow <- struct{}{}:
		default:
		}
	}
	return sync.OnceFunc(func() { m.watches.Add(-1) })
}

// run is the follower. It sleeps while no watch is open.
func (e *end) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.follow:
		}
		ticker := time.NewTicker(followEvery)
		for e.moving.open() > 0 && ctx.Err() == nil {
			_ = e.refresh(ctx) // If the database is unavailable, watches wait for it, and requests return the error.
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
		ticker.Stop()
	}
}

// refresh moves the feed to the end of the record. Callers that wait for each other share one read.
func (e *end) refresh(ctx context.Context) error {
	arrived := time.Now()
	e.reading.Lock()
	defer e.reading.Unlock()
	e.mu.Lock()
	fresh, known := e.asked.After(arrived), e.at.Batch
	e.mu.Unlock()
	if fresh {
		return nil
	}
	asked := time.Now()
	pulse, err := e.moving.cluster.record.Commits().Pulse(ctx)
	if err != nil {
		return unavailable(err)
	}
	if pulse.Batch != known || known == 0 {
		if err := e.advance(ctx); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = asked
	if e.at.Batch == pulse.Batch {
		e.at.Pulse, e.read = pulse, asked
	}
	return nil
}

func (e *end) advance(ctx context.Context) error {
	at, err := e.moving.cluster.record.Commits().End(ctx)
	if err != nil {
		return unavailable(err)
	}
	if at.FirstSeq == 0 {
		return unresolved(fmt.Errorf("%w of cluster %s", history.ErrEmpty, e.moving.cluster.record.Cluster().Name))
	}
	e.mu.Lock()
	first := e.at.Batch == 0
	e.mu.Unlock()
	if first {
		e.moving.feed.SeekTo(at.LastSeq, at.Batch)
	} else if err := e.moving.feed.Advance(ctx, at.LastSeq, at.Batch); err != nil {
		return unavailable(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.instant != nil {
		e.old = e.instant
	}
	e.at, e.read, e.instant = at, time.Now(), nil
	return nil
}

// now returns the cluster at the end of the record.
func (e *end) now(ctx context.Context) (*instant, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	revision, err := e.moving.cluster.revision.now(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	at, instant := e.at, e.instant
	e.mu.Unlock()
	if instant != nil && instant.revision == revision {
		return instant, nil
	}
	if instant, err = e.make(ctx, &at, revision); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.Batch == at.Batch {
		e.instant = instant
	}
	return instant, nil
}

// make builds the instant of the record's end. Its stream positions belong to the same commit.
func (e *end) make(ctx context.Context, at *history.End, revision int64) (*instant, error) {
	c := e.moving.cluster
	p, err := c.record.Resolve(ctx, history.AtSeq(at.LastSeq), history.Scope{})
	if err != nil {
		return nil, unresolved(err)
	}
	p.Time = at.LastAt
	made, err := newInstant(ctx, c, p, revision, at.Streams)
	if err != nil {
		return nil, err
	}
	made.moving, made.feed, made.positions = e.moving, e.moving.feed, map[int32]string{}
	for i := range at.Streams {
		made.positions[at.Streams[i].ID] = at.Streams[i].LastRV
	}
	return made, nil
}

// kept returns the current or the previous instant if it has this seq, else nil.
func (e *end) kept(seq int64) *instant {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, at := range []*instant{e.instant, e.old} {
		if at != nil && at.point.Seq == seq {
			return at
		}
	}
	return nil
}

// serve answers from an instant. If the requested resource version is not recorded yet, serve waits for it, up to
// reachWithin.
func (e *end) serve(w http.ResponseWriter, r *http.Request, at *instant) error {
	var over <-chan time.Time // nil before the first try has failed
	for waits := true; ; {
		changed := e.moving.feed.Changed()
		e.warn(w)
		err := at.serve(w, r)
		if !isTooLarge(err) || !waits {
			return err
		}
		if over == nil {
			over = e.moving.cluster.after(reachWithin)
		}
		if waits, err = e.wait(r.Context(), changed, over); err != nil {
			return err
		}
		if at, err = e.now(r.Context()); err != nil {
			return err
		}
		w.Header().Del("Warning")
	}
}

// wait returns more true when the feed has moved, and false when the time is over.
func (e *end) wait(ctx context.Context, changed <-chan struct{}, over <-chan time.Time) (more bool, err error) {
	defer e.moving.hold()()
	select {
	case <-changed:
		return true, nil
	case <-over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// warn adds a Warning header if the cluster may have changed since the last commit.
func (e *end) warn(w http.ResponseWriter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if text := e.at.Outdated(time.Since(e.read)); text != "" {
		wire.Warn(w, text)
	}
}
