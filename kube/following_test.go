package kube

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// handlerCall is one call of a Handler.
type handlerCall struct {
	what     string
	resource Resource
	before   Resource
	since    string
	at       string
}

// following is a running follower that records its handler calls.
type following struct {
	*Follower
	calls      chan handlerCall
	discovered chan struct{}
	fail       func(handlerCall) error

	initial []Resource    // added before Synced was closed
	all     []handlerCall // the calls before Synced was closed
	stop    func()

	mu        sync.Mutex
	discovery *Discovery
}

func newFollowing(t *testing.T, client *Client, options FollowerOptions) *following {
	f := &following{calls: make(chan handlerCall, 1000), discovered: make(chan struct{}, 1000)}
	options.OnDiscovery = func(_ context.Context, d *Discovery) {
		f.mu.Lock()
		f.discovery = d
		f.mu.Unlock()
		f.discovered <- struct{}{}
	}
	f.Follower = NewFollower(client, f, options)
	return f
}

// run runs the follower until the test ends or stop is called.
func (f *following) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	f.stop = func() { cancel(); running.Wait() }
	t.Cleanup(f.stop)
}

// start runs the follower until it is synced, and takes its first calls.
func (f *following) start(t *testing.T) {
	t.Helper()
	f.run(t)
	select {
	case <-f.Synced():
	case <-time.After(deadline):
		t.Fatal("the follower is not synced")
	}
	for len(f.calls) > 0 {
		made := <-f.calls
		f.all = append(f.all, made)
		if made.what == "added" {
			f.initial = append(f.initial, made.resource)
		}
	}
}

func (f *following) note(said handlerCall) error {
	if f.fail != nil {
		if err := f.fail(said); err != nil {
			return err
		}
	}
	f.calls <- said
	return nil
}

func (f *following) Added(_ context.Context, r Resource, since string) error {
	return f.note(handlerCall{what: "added", resource: r, since: since})
}

func (f *following) Removed(_ context.Context, r Resource, at string) error {
	return f.note(handlerCall{what: "removed", resource: r, at: at})
}

func (f *following) Changed(_ context.Context, before, after Resource) error {
	return f.note(handlerCall{what: "changed", before: before, resource: after})
}

// next returns the next handler call.
func (f *following) next(t *testing.T) handlerCall {
	t.Helper()
	select {
	case said := <-f.calls:
		return said
	case <-time.After(deadline):
		require.Fail(t, "no handler call")
		return handlerCall{}
	}
}

// last returns the last complete discovery.
func (f *following) last() *Discovery {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.discovery == nil {
		return &Discovery{}
	}
	return f.discovery
}
