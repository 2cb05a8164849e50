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

// Handler receives the findings of a [Follower]. The follower makes one call at a time, and keeps the order of findings of
// one resource. If a call returns an error, the follower repeats it with growing delays. A handler therefore must accept
// repeated calls.
type Handler interface {
	// Added announces a resource to record. since is empty, or a resource version at which the resource was new and had no
	// objects. A watch from since needs no list and misses nothing, unless objects have outlived an earlier definition. The
	// API server can still refuse it with 410, if objects came before its own history of the resource began.
	Added(ctx context.Context, r Resource, since string) error
	// Removed reports that the server no longer serves the resource. An open stream may still receive its last deletions.
	// at is a resource version at which the definition and so all its objects were gone, or empty if no such version is
	// known. The handler may not know the definition: if it was deleted before the follower could announce it, its objects
	// were not followed.
	Removed(ctx context.Context, r Resource, at string) error
	// Changed announces another version if the server no longer serves the version in use. It also announces a definition
	// with new schemas: the same objects may have other content now, at the same resource versions.
	Changed(ctx context.Context, before, after Resource) error
}

// FollowerOptions are the knobs of a [Follower].
type FollowerOptions struct {
	// Recorded are the resources of an earlier run. The follower calls Removed for those that the server no longer serves.
	Recorded []Resource
	// Since is the resource version up to which that run knew CustomResourceDefinitions, empty if there was no earlier run.
	// Definitions created after it are announced with the version from which to watch, if the server still has it.
	Since string
	// Created are definitions of that run, by UID, whose resources it did not follow yet. Each has the resource version of
	// its creation. The follower announces them.
	Created map[types.UID]string
	// Rediscover is the time between two complete discoveries: 10 minutes, plus up to a tenth.
	Rediscover time.Duration
	// RediscoverDegraded replaces Rediscover if definitions or API services cannot be followed: 1 minute.
	RediscoverDegraded time.Duration
	// OnDiscovery, if not nil, is called with each complete discovery, after the handler's calls.
	OnDiscovery func(ctx context.Context, d *Discovery)
	// Log receives the errors; nil discards them.
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

// Follower keeps the set of resources current while the server runs. It watches CustomResourceDefinitions and APIServices,
// and repeats discovery periodically. It queues its findings in a workqueue and passes them to the handler.
type Follower struct {
	client      *Client
	handler     Handler
	options     FollowerOptions
	definitions *extractCache[definition]
	services    *extractCache[service]
	queue       workqueue.TypedRateLimitingInterface[schema.GroupResource]
	ready       chan struct{} // closed when definitions and API services are known, so that a discovery can be judged
	synced      chan struct{}

	// confirm is the time until the discovery that must confirm the previous one. While API servers are upgraded one by
	// one, old and new servers answer in turn.
	confirm time.Duration

	// The worker owns the following fields.
	catalog  *catalog
	unsure   *sightings
	misnamed []string // the names of the last warning
	started  bool     // the first discovery was made
	waits    int      // consecutive discoveries in which an expected group was missing
}

// everything is the queue's key for a complete discovery.
var everything = schema.GroupResource{}

const (
	confirmAfter = 5 * time.Second
	// debounce delays a discovery until a burst of APIService events has ended.
	debounce = 200 * time.Millisecond
	// incompleteAfter is the delay before a repeated discovery if an expected group is missing. It doubles each time.
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
	f.definitions = newExtractCache[definition](client.ListWatch(definitionResource, ""), f.options.Log)
	f.definitions.parse, f.definitions.changed = parseDefinition, f.definitionChanged
	f.definitions.begun, f.definitions.tracksDeletes = func(d *definition) bool { return d.established }, true
	f.services = newExtractCache[service](client.ListWatch(serviceResource, ""), f.options.Log)
	f.services.parse, f.services.changed = parseService, f.serviceChanged
	f.services.begun = func(s *service) bool { return s.available }
	f.catalog = newCatalog(f.definitions, f.services, options.Recorded)
	return f
}

// Run follows until the context ends. It returns when all its goroutines have ended. It is called once.
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

// Synced is closed after the first attempt to announce everything that the server offered at the start.
func (f *Follower) Synced() <-chan struct{} { return f.synced }

// LookAgain makes the follower list a resource again, if it watches that resource itself. The caller has found that the
// server's history was rolled back, and that lists show the current state. The old watch would show nothing new until the
// server has passed the old revision.
func (f *Follower) LookAgain(resource schema.GroupResource) {
	switch resource {
	case definitionResource.GroupResource():
		f.definitions.relist()
	case serviceResource.GroupResource():
		f.services.relist()
	}
}

// Degraded returns why only periodic discovery finds new and removed resources, which makes it late. It returns nil if the
// watches work.
func (f *Follower) Degraded() error {
	return errors.Join(f.definitions.health.err(), f.services.health.err())
}

// begin requests the first discovery when the definitions are known. Without them, it could not distinguish resources that
// have a definition from others.
func (f *Follower) begin(ctx context.Context) {
	for _, decided := range []<-chan struct{}{f.definitions.health.decided, f.services.health.decided} {
		select {
		case <-decided:
		case <-ctx.Done():
			return
		}
	}
	f.recall(ctx)
	close(f.ready)
	f.queue.Add(everything)
}

// recall finds since for the definitions that the earlier run did not follow.
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
		search := &recall[definition]{cache: f.definitions, since: f.options.Since, created: f.options.Created, missing: missing}
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
			f.options.Log.Warn("resource discovery failed; will retry", "resource", key.String(), "error", err)
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
		// Until the definitions are known, every resource with a definition would look as if it were gone. The first
		// discovery handles all resources.
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

// definitionChanged is called by the cache of definitions.
func (f *Follower) definitionChanged(before, after *extract[definition]) {
	for _, e := range []*extract[definition]{before, after} {
		if e != nil {
			f.queue.Add(e.value.groupResource())
		}
	}
}

// serviceChanged is called by the cache of API services. It ignores the APIServices of definitions, unless definitions
// cannot be followed: the definitions themselves show the same changes.
func (f *Follower) serviceChanged(before, after *extract[service]) {
	for _, e := range []*extract[service]{before, after} {
		if e != nil && (e.value.origin != originDefinition || f.definitions.health.err() != nil) {
			f.queue.AddAfter(everything, debounce)
			return
		}
	}
}

// interval returns the time until the next discovery.
func (f *Follower) interval() time.Duration {
	every := f.options.Rediscover
	if f.Degraded() != nil {
		every = f.options.RediscoverDegraded
	}
	return every + rand.N(every/10+1)
}
