package kube

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// telling is one call of a Handler.
type telling struct {
	what     string
	resource Resource
	before   Resource
	since    string
	at       string
}

// following is a running follower that notes what it tells.
type following struct {
	*Follower
	tellings   chan telling
	discovered chan struct{}
	fail       func(telling) error

	initial []Resource // what was added up to Synced
	all     []telling  // what was told up to Synced
	stop    func()

	mu        sync.Mutex
	discovery *Discovery
}

func newFollowing(t *testing.T, client *Client, options FollowerOptions) *following {
	f := &following{tellings: make(chan telling, 1000), discovered: make(chan struct{}, 1000)}
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

// start runs the follower and takes in what it tells at first.
func (f *following) start(t *testing.T) {
	t.Helper()
	f.run(t)
	select {
	case <-f.Synced():
	case <-time.After(deadline):
		t.Fatal("the follower is not synced")
	}
	for len(f.tellings) > 0 {
		telling := <-f.tellings
		f.all = append(f.all, telling)
		if telling.what == "added" {
			f.initial = append(f.initial, telling.resource)
		}
	}
}

func (f *following) tell(said telling) error {
	if f.fail != nil {
		if err := f.fail(said); err != nil {
			return err
		}
	}
	f.tellings <- said
	return nil
}

func (f *following) Added(_ context.Context, r Resource, since string) error {
	return f.tell(telling{what: "added", resource: r, since: since})
}

func (f *following) Removed(_ context.Context, r Resource, at string) error {
	return f.tell(telling{what: "removed", resource: r, at: at})
}

func (f *following) Changed(_ context.Context, before, after Resource) error {
	return f.tell(telling{what: "changed", before: before, resource: after})
}

// next is what is told next.
func (f *following) next(t *testing.T) telling {
	t.Helper()
	select {
	case said := <-f.tellings:
		return said
	case <-time.After(deadline):
		require.Fail(t, "nothing is told")
		return telling{}
	}
}

// last is the last complete discovery.
func (f *following) last() *Discovery {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.discovery == nil {
		return &Discovery{}
	}
	return f.discovery
}
