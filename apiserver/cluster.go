package apiserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/history"
)

const (
	defaultCacheBytes = 512 << 20
	// instantsKept is the number of instants whose discovery stays in memory.
	instantsKept = 32
)

// A cluster is one record that this server serves.
type cluster struct {
	record      *history.Record
	gate        *gate
	states      *state.Cache
	instants    instants
	revision    *revision
	discoveries *lru.Cache    // of *discovery.Server by discoveryID
	watches     chan struct{} // has one element for each open watch
	key         [32]byte      // signs continue tokens

	intentions func(Intention) error                // may be nil
	after      func(time.Duration) <-chan time.Time // time.After

	ctx  context.Context // of the goroutines that run until Close
	stop context.CancelFunc
	work sync.WaitGroup
	live func() *moving // the root at the end of the record; its first use starts the follower
}

func newCluster(record *history.Record, o Options) (*cluster, error) {
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MaxWatches == 0 {
		o.MaxWatches = DefaultMaxWatches
	}
	c := &cluster{
		record: record, gate: newGate(record, o.Access), states: state.NewCache(o.CacheBytes), instants: instants{kept: lru.New(instantsKept)},
		revision: &revision{record: record}, discoveries: lru.New(instantsKept), watches: make(chan struct{}, o.MaxWatches), intentions: o.Intentions, after: time.After,
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.live = sync.OnceValue(c.newLive)
	_, err := rand.Read(c.key[:])
	return c, err
}

func (c *cluster) close() {
	c.stop()
	c.live().feed.Close()
	c.work.Wait()
	c.states.Close()
}

// instant returns the cluster at a seq.
func (c *cluster) instant(ctx context.Context, seq int64) (*instant, error) {
	revision, err := c.revision.now(ctx)
	if err != nil {
		return nil, err
	}
	id := instantID{seq: seq, revision: revision}
	if known := c.instants.get(id); known != nil {
		return known, nil
	}
	head, err := c.record.Commits().Head(ctx) // read first: later reads may be newer, never older
	if err != nil {
		return nil, unavailable(err)
	}
	extent, err := c.record.Extent(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	if seq > extent.LastSeq {
		return nil, unknownPath(fmt.Sprintf("the record ends at seq:%d: seq:%d is not recorded yet", extent.LastSeq, seq))
	}
	if last := c.instants.atEnd(id, head.Batch); last != nil && seq == extent.LastSeq {
		return last, nil
	}
	p, err := c.record.Resolve(ctx, history.AtSeq(seq), history.Scope{})
	if err != nil {
		return nil, unresolved(err)
	}
	if seq == extent.LastSeq {
		p.Time = extent.LastAt
	}
	streams, err := c.record.Streams(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	at, err := newInstant(ctx, c, p, revision, streams)
	switch {
	case err != nil:
	case seq < extent.LastSeq:
		c.instants.add(id, at)
	default:
		c.instants.end(id, head.Batch, at)
	}
	return at, err
}

// unresolved returns the answer for an instant or a version that the record does not have.
func unresolved(err error) error {
	var missing *history.MissingDayError
	var known apierrors.APIStatus
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, history.ErrBeforeRecord), errors.As(err, &missing):
		return apierrors.NewResourceExpired(err.Error())
	case errors.Is(err, history.ErrEmpty):
		return unknownPath(err.Error())
	}
	return unavailable(err)
}

// unavailable returns the answer if the database does not respond, so that clients retry.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the record cannot be read now: %v", err))
}
