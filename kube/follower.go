package kube

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/kuberewind/kuberewind/delta"
)

// Handler receives the findings of a [Follower]. Calls come one at a time, in the order in which things are found for one
// resource. An error makes the follower call again, later and later; a handler therefore must bear a repeated call.
type Handler interface {
	// Added announces a resource to record. since is empty, or a resource version at which the resource was new and had no
	// objects. A watch from there needs no list and misses nothing, unless objects have outlived an earlier definition. The API
	// server can still refuse it with 410, if objects came before its own history of the resource began.
	Added(ctx context.Context, r Resource, since string) error
	// Removed tells that the resource is no longer served. An open stream may still bring its last deletions. at is a resource
	// version at which its definition and so all its objects were gone; empty if there is none. The definition may be new to
	// the receiver: it was gone before it could be announced, and nobody has followed its objects.
	Removed(ctx context.Context, r Resource, at string) error
	// Changed announces another version, because the one in use is no longer served. It also announces a definition with new
	// schemas: the same objects may look different now, at the same resource versions.
	Changed(ctx context.Context, before, after Resource) error
}

// FollowerOptions are the knobs of a [Follower].
type FollowerOptions struct {
	// Recorded are the resources of an earlier run. Removed is called for those that are not served any more.
	Recorded []Resource
	// Since is the resource version up to which CustomResourceDefinitions were known
	// in that run, empty if there was none. Definitions created after it are announced
	// with the resource version from which to watch if the server still knows.
	Since string
	// Created are definitions of that run, by UID, whose resources it did not come to follow, each with the resource version of
	// its creation. They are announced.
	Created map[types.UID]string
	// Rediscover is the time between two complete discoveries: 10 minutes, plus up to
	// a tenth.
	Rediscover time.Duration
	// RediscoverDegraded is the same when definitions or API services cannot be
	// followed: 1 minute.
	RediscoverDegraded time.Duration
	// OnDiscovery is called with each complete discovery, after the handler has had its news, if it is not nil.
	OnDiscovery func(ctx context.Context, d *Discovery)
	// Log gets the errors; nil for none.
	Log *slog.Logger
}

func (o FollowerOptions) withDefaults() FollowerOptions {
	if o.Rediscover == 0 {
		o.Rediscover = 10 * time.Minute
	}
	if o.RediscoverDegraded == 0 {
		o.RediscoverDegraded = time.Minute
	}
	if o.OnDiscovery == nil {
		o.OnDiscovery = func(context.Context, *Discovery) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Follower keeps the set of resources current while the server runs: it watches CustomResourceDefinitions and APIServices, and
// rediscovers now and then. Its findings go through a workqueue to the handler.
type Follower struct {
	client      *Client
	handler     Handler
	options     FollowerOptions
	definitions *album[definition]
	services    *album[service]
	queue       workqueue.TypedRateLimitingInterface[schema.GroupResource]
	ready       chan struct{} // closed when a discovery can be judged
	synced      chan struct{}

	// confirm is the time until the discovery that has to confirm an earlier one. While API servers are upgraded one by one,
	// old and new ones answer in turn.
	confirm time.Duration

	// The worker owns what follows.
	catalog  *catalog
	unsure   *sightings
	misnamed []string // what the log was last told of
	started  bool     // the first pass was made
	waits    int      // passes in a row in which groups were expected that were not there
}

// everything is the queue's key for a complete discovery.
var everything = schema.GroupResource{}

const (
	confirmAfter = 5 * time.Second
	// settleAfter lets a burst of APIService events end before a discovery.
	settleAfter = 200 * time.Millisecond
	// incompleteAfter is when to look again for a group that should be there; it doubles
	// from pass to pass.
	incompleteAfter = time.Second
	// retryBase and retryCap bound the delay between tries of one resource.
	retryBase = 20 * time.Millisecond
	retryCap  = 30 * time.Second
)

// NewFollower makes a follower; Run starts it.
func NewFollower(client *Client, handler Handler, options FollowerOptions) *Follower {
	f := &Follower{
		client:  client,
		handler: handler,
		options: options.withDefaults(),
		ready:   make(chan struct{}),
		synced:  make(chan struct{}),
		confirm: confirmAfter,
		unsure:  &sightings{first: map[schema.GroupResource]sighting{}},
	}
	f.definitions = newAlbum[definition](client.ListWatch(definitionResource, ""), f.options.Log)
	f.definitions.parse, f.definitions.changed = parseDefinition, f.definitionChanged
	f.definitions.begun, f.definitions.taking = func(d *definition) bool { return d.established }, true
	f.services = newAlbum[service](client.ListWatch(serviceResource, ""), f.options.Log)
	f.services.parse, f.services.changed = parseService, f.serviceChanged
	f.services.begun = func(s *service) bool { return s.available }
	f.catalog = newCatalog(f.definitions, f.services, options.Recorded)
	return f
}

// Run follows until the context ends, and returns when everything that it started
// has. It is called once.
func (f *Follower) Run(ctx context.Context) {
	f.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[schema.GroupResource](retryBase, retryCap))
	var running sync.WaitGroup
	running.Go(func() { f.definitions.run(ctx) })
	running.Go(func() { f.services.run(ctx) })
	running.Go(func() { f.begin(ctx) })
	running.Go(func() { f.work(ctx) })
	<-ctx.Done()
	f.queue.ShutDown()
	running.Wait()
}

// Synced is closed once everything that the server offered at the start was
// announced, or tried to be.
func (f *Follower) Synced() <-chan struct{} { return f.synced }

// LookAgain says that the server's history has gone backwards, and that lists of a resource show the current state. If the
// follower watches that resource for others, its watch would bring nothing new until the server has passed the old revision.
func (f *Follower) LookAgain(resource schema.GroupResource) {
	switch resource {
	case definitionResource.GroupResource():
		f.definitions.listAnew()
	case serviceResource.GroupResource():
		f.services.listAnew()
	}
}

// Degraded says why new and removed resources are found late, by periodic discovery
// only; nil if they are not.
func (f *Follower) Degraded() error {
	return errors.Join(f.definitions.access.trouble(), f.services.access.trouble())
}

// begin asks for the first discovery when the definitions are known: resources with a definition must be told from the others.
func (f *Follower) begin(ctx context.Context) {
	for _, settled := range []<-chan struct{}{f.definitions.access.settled, f.services.access.settled} {
		select {
		case <-settled:
		case <-ctx.Done():
			return
		}
	}
	f.recall(ctx)
	close(f.ready)
	f.queue.Add(everything)
}

// recall finds since when the resources are defined that the earlier run did not follow.
func (f *Follower) recall(ctx context.Context) {
	f.definitions.remember(f.options.Created)
	if f.options.Since == "" {
		return
	}
	known := map[types.UID]bool{}
	for _, r := range f.options.Recorded {
		known[r.DefinitionUID] = true
	}
	missing := map[types.UID]bool{}
	for _, e := range f.definitions.all() {
		if !known[e.uid] && e.since == "" && delta.Passes(e.version, f.options.Since) {
			missing[e.uid] = true
		}
	}
	if len(missing) > 0 {
		search := &recall[definition]{album: f.definitions, since: f.options.Since, created: f.options.Created, missing: missing}
		search.run(ctx)
	}
}

// work is the only goroutine that calls the handler.
func (f *Follower) work(ctx context.Context) {
	for {
		key, quit := f.queue.Get()
		if quit {
			return
		}
		if err := f.process(ctx, key); err != nil && ctx.Err() == nil {
			f.options.Log.Warn("will be tried again", "resource", key.String(), "error", err)
			f.queue.AddRateLimited(key)
		} else {
			f.queue.Forget(key)
		}
		f.queue.Done(key)
	}
}

func (f *Follower) process(ctx context.Context, key schema.GroupResource) error {
	select {
	case <-ctx.Done():
		return nil
	case <-f.ready:
	default:
		// Before the definitions are known, everything that comes from one would look
		// as if it were gone. The first pass has it all.
		return nil
	}
	switch {
	case key == everything:
		return f.rediscover(ctx)
	case !f.started:
		return nil
	}
	return f.reconcile(ctx, key)
}

// definitionChanged is called by the album of definitions.
func (f *Follower) definitionChanged(before, after *extract[definition]) {
	for _, e := range []*extract[definition]{before, after} {
		if e != nil {
			f.queue.Add(e.value.groupResource())
		}
	}
}

// serviceChanged is called by the album of API services. Those of definitions bring
// nothing that the definitions do not, unless these cannot be followed.
func (f *Follower) serviceChanged(before, after *extract[service]) {
	for _, e := range []*extract[service]{before, after} {
		if e != nil && (e.value.origin != originDefinition || f.definitions.access.trouble() != nil) {
			f.queue.AddAfter(everything, settleAfter)
			return
		}
	}
}

// interval is the time until the next discovery.
func (f *Follower) interval() time.Duration {
	every := f.options.Rediscover
	if f.Degraded() != nil {
		every = f.options.RediscoverDegraded
	}
	return every + rand.N(every/10+1)
}
