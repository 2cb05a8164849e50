// Package capture keeps what a real API server serves as a data.Set: the raw bytes of a consistent list of everything, and of every
// watch event from there on. It takes nothing of the recorder, so that what the recorder is measured on is not its own view of things.
//
// # What it guarantees
//
// All lists are of one revision of etcd, at which all watches begin; so the Set has every version from there on, of each resource up to
// its last event. Events are in the order of their revisions. There are no gaps: a watch that ends is opened again at its last event.
// If that is refused, or an error event comes, there is no Set. In two cases a watch begins at a new list:
//
//   - A resource is defined meanwhile. Its first list must be empty. If not, there is no Set.
//   - A definition was changed. The server then restarts the storage of the resource, and refuses older resource versions.
//     The new list must show the objects of the watch, in the same versions. If not, there is no Set.
//
// An object that is created and deleted just before such a list is missed.
//
// # Goroutines
//
// One for each resource, and one that follows what is defined; they have ended when Stop returns.
package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/bench/data"
)

// A Capture is one that goes on.
type Capture struct {
	client *http.Client
	host   string
	dir    string
	first  []data.Event
	files  []string
	found  []data.Resource
	events atomic.Int64
	at     sync.Map // by schema.GroupResource, the resource version up to which it was kept
	cancel context.CancelCauseFunc
	group  *errgroup.Group

	definitions chan data.Resource // definitions that a watch has served
}

// errStopped is the cause of watches that Stop has ended.
var errStopped = errors.New("capture stopped")

// Start lists everything that can be listed and watched, and watches it. Events are kept in files of a folder until Stop, which the caller calls.
func Start(ctx context.Context, config *rest.Config, dir string) (_ *Capture, err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	c := &Capture{client: client, host: strings.TrimSuffix(base.String(), "/"), dir: dir, definitions: make(chan data.Resource)}
	if c.found, err = resources(config, client); err != nil {
		return nil, err
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	c.group, ctx = errgroup.WithContext(ctx)
	if err := c.begin(ctx); err != nil {
		c.cancel(err)
		return nil, errors.Join(err, c.wait())
	}
	return c, nil
}

// resources are the resources that can be listed and watched, one name of each.
func resources(config *rest.Config, client *http.Client) (all []data.Resource, err error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if gv.Group != "events.k8s.io" { // events of the core group, by another name
				all = append(all, data.Resource{Group: gv.Group, Version: gv.Version, Resource: r.Name, Kind: r.Kind, Namespaced: r.Namespaced})
			}
		}
	}
	slices.SortFunc(all, func(a, b data.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return all, nil
}

func (c *Capture) begin(ctx context.Context) error {
	revision := ""
	var all []*follower
	for i, r := range c.found {
		events, at, err := c.list(ctx, i, r, revision)
		if err != nil {
			return fmt.Errorf("list of %s: %w", r.Resource, err)
		}
		revision = at // of the first list; the others are of the same
		c.first = append(c.first, events...)
		f := newFollower(r, i, at)
		for _, e := range events {
			f.living[e.UID] = strconv.FormatUint(e.RV, 10)
		}
		all = append(all, f)
	}
	for _, f := range all {
		if err := c.follow(ctx, f); err != nil {
			return err
		}
	}
	c.group.Go(func() error { return c.followDefined(ctx) })
	return nil
}

// Position is the resource version up to which a resource was kept. It is empty if the resource is not followed.
func (c *Capture) Position(r schema.GroupResource) string {
	at, _ := c.at.Load(r)
	position, _ := at.(string)
	return position
}

// Events is how many were kept so far.
func (c *Capture) Events() int { return int(c.events.Load()) }

func (c *Capture) wait() error {
	err := c.group.Wait()
	c.client.CloseIdleConnections()
	return err
}

// Stop ends the watches and gives their events. The Set reads the files of the folder.
func (c *Capture) Stop() (data.Set, error) {
	c.cancel(errStopped)
	if err := c.wait(); err != nil {
		return nil, err
	}
	s := &set{resources: c.found, first: c.first, files: c.files}
	for _, err := range s.Events() {
		if err != nil {
			return nil, err
		}
		s.events++
	}
	return s, nil
}
