package state

import (
	"container/list"
	"context"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
)

// Record is the source of States.
type Record interface {
	Rebuild(ctx context.Context, p history.Point, scope history.Scope, o history.RebuildOptions, emit func(history.Object) error) (history.RebuildStats, error)
	Versions(ctx context.Context, q history.Query) iter.Seq2[history.Version, error]
}

// An ID identifies a State.
type ID struct {
	Resource  schema.GroupResource
	Namespace string // "" for all
	Seq       int64
	RV        string // "" for all deltas up to Seq
	Version   int64  // of the record; it changes when days are dropped or values are erased
}

// A Cache holds the last used States.
type Cache struct {
	most   int64
	ctx    context.Context // of the builds
	stop   context.CancelFunc
	builds sync.WaitGroup

	mu    sync.Mutex // protects what follows
	slots map[ID]*list.Element
	order *list.List // of *slot, the last used first
	bytes int64
}

type slot struct {
	id    ID
	ready chan struct{} // closed when state or err is set
	state *State
	err   error
}

// NewCache makes a Cache that keeps about most bytes.
func NewCache(most int64) *Cache {
	ctx, stop := context.WithCancel(context.Background())
	return &Cache{most: most, ctx: ctx, stop: stop, slots: map[ID]*list.Element{}, order: list.New()}
}

// Close ends the builds and waits for them. After Close, no build starts, because a WebSocket may outlive its server.
func (c *Cache) Close() {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.builds.Wait()
}

// Get returns a State from the Cache, or builds it. An error is not cached. After Close, the error is context.Canceled.
func (c *Cache) Get(ctx context.Context, id ID, build func(context.Context) (*State, error)) (*State, error) {
	s := c.slot(id, build)
	select {
	case <-s.ready:
		return s.state, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Cache) slot(id ID, build func(context.Context) (*State, error)) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.slots[id]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*slot)
	}
	s := &slot{id: id, ready: make(chan struct{})}
	if s.err = c.ctx.Err(); s.err != nil {
		close(s.ready)
		return s
	}
	c.slots[id] = c.order.PushFront(s)
	c.builds.Go(func() { c.build(s, build) })
	return s
}

func (c *Cache) build(s *slot, build func(context.Context) (*State, error)) {
	s.state, s.err = build(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(s.ready)
	if s.err != nil {
		c.drop(c.slots[s.id])
		return
	}
	c.bytes += s.state.size
	for e := c.order.Back(); e != nil && c.bytes > c.most; {
		previous := e.Prev()
		if old := e.Value.(*slot); old != s && old.done() {
			c.drop(e)
		}
		e = previous
	}
}

// drop removes a slot. mu is held.
func (c *Cache) drop(e *list.Element) {
	s := c.order.Remove(e).(*slot)
	delete(c.slots, s.id)
	if s.state != nil {
		c.bytes -= s.state.size
	}
}

func (s *slot) done() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// Kept returns a State from the Cache, nil if it is not there.
func (c *Cache) Kept(id ID) *State {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.slots[id]
	if e == nil || !e.Value.(*slot).done() {
		return nil
	}
	return e.Value.(*slot).state
}

// Before returns the newest cached State of the same objects at the same or an earlier seq, nil if there is none. It
// considers only States that include all deltas up to their seq.
func (c *Cache) Before(id ID) (newest *State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, e := range c.slots {
		if other.Resource != id.Resource || other.Namespace != id.Namespace || other.Version != id.Version || other.RV != "" || other.Seq > id.Seq {
			continue
		}
		if s := e.Value.(*slot); s.done() && s.state != nil && (newest == nil || s.state.Seq > newest.Seq) {
			newest = s.state
		}
	}
	return newest
}
