package kube

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kuberewind/kuberewind/delta"
)

// extractCache keeps an extract of every object of one resource, by name. client-go's reflector lists and watches for it.
// The reflector may skip or repeat intermediate states; the cache only needs the newest one.
type extractCache[T any] struct {
	lister *ListWatch
	parse  func(*Object) (*T, error)
	// begun reports whether the API that the object describes has begun to be served.
	begun func(*T) bool
	// tracksDeletes makes the cache keep deleted objects that the follower has not handled.
	tracksDeletes bool
	// changed is called after each change, without the lock. before is nil for a new object, after is nil for a deleted one.
	changed        func(before, after *extract[T])
	log            *slog.Logger
	relistRequests chan struct{} // holds an element if the next step is a list
	health         *cacheHealth

	mu      sync.Mutex // protects what follows
	entries map[string]*extract[T]
	// unhandledDeletes has, by name, the last object that had begun and was deleted before the follower handled it. Its since
	// is the value of the first such object.
	unhandledDeletes map[string]*extract[T]
	version          string // the entries are complete up to this resource version; empty before the first list
}

// extract is the part of an object that the cache keeps. A definition can have a megabyte, of which a follower needs a few
// hundred bytes.
type extract[T any] struct {
	value   *T
	uid     types.UID
	version string // resource version of the object
	// since is the resource version at which the object's resource began, or an earlier version. It is empty if the
	// resource began before the cache could see it. If unhandled deleted objects of the name preceded this one, since is
	// the value of the first of them.
	since   string
	handled bool // the follower has announced its resource or its end; protected by the cache's lock
}

func newExtractCache[T any](lister *ListWatch, log *slog.Logger) *extractCache[T] {
	return &extractCache[T]{lister: lister, log: log, relistRequests: make(chan struct{}, 1), health: newCacheHealth(lister.resource, log),
		entries: map[string]*extract[T]{}, unhandledDeletes: map[string]*extract[T]{}}
}

// cachePageItems bounds the memory of a list. The cache keeps only the extracts of the items.
const cachePageItems = 50

// run lists and watches the resource until the context ends.
func (a *extractCache[T]) run(ctx context.Context) {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 30 * time.Second}
	_ = backoff.DelayWithReset(clock.RealClock{}, 2*time.Minute).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		a.follow(ctx)
		return false, nil
	})
}

// follow lists and watches until that fails, or until a relist is requested.
func (a *extractCache[T]) follow(ctx context.Context) {
	watched, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	relist := false // read only after ended is closed
	go func() {
		defer close(ended)
		select {
		case <-watched.Done():
		case <-a.relistRequests:
			relist = true
			cancel()
		}
	}()
	silent := klog.Logger{}
	reflector := cache.NewReflectorWithOptions(&extractLister[T]{ListWatch: a.lister, cache: a, ctx: watched}, nil, a, cache.ReflectorOptions{
		Logger: &silent, Name: "kube", TypeDescription: a.lister.resource.String(),
	})
	reflector.WatchListPageSize = cachePageItems
	err := reflector.ListAndWatchWithContext(watched)
	cancel()
	<-ended
	switch {
	case relist:
		a.mu.Lock()
		a.version = "" // The version belongs to another history.
		a.mu.Unlock()
	case err != nil && ctx.Err() == nil:
		a.mu.Lock()
		listed := a.version != ""
		a.mu.Unlock()
		a.health.fail(err, listed)
	}
}

// relist makes the cache list again instead of continuing its watch. For objects that are new in that list, since is
// unknown.
func (a *extractCache[T]) relist() {
	select {
	case a.relistRequests <- struct{}{}:
	default: // A relist is already requested.
	}
}

// get returns the extract of an object, or nil if no object has the name.
func (a *extractCache[T]) get(name string) *extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entries[name]
}

// absentAt returns a resource version at which no object had the name, or "" if an object has it.
func (a *extractCache[T]) absentAt(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[name] != nil {
		return ""
	}
	return a.version
}

// all returns the extracts of all objects.
func (a *extractCache[T]) all() []*extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*extract[T], 0, len(a.entries))
	for _, e := range a.entries {
		all = append(all, e)
	}
	return all
}

// Add implements cache.ReflectorStore.
func (a *extractCache[T]) Add(object any) error { return a.put(object) }

// Update implements cache.ReflectorStore.
func (a *extractCache[T]) Update(object any) error { return a.put(object) }

func (a *extractCache[T]) put(object any) error {
	name, after := a.extract(object)
	if after == nil {
		return nil
	}
	a.mu.Lock()
	before := a.entries[name]
	a.noteDelete(name, before, after)
	a.setSince(name, before, after, object.(*Object).ResourceVersion)
	a.entries[name] = after
	a.mu.Unlock()
	a.changed(before, after)
	return nil
}

// setSince sets after.since. version is the resource version of the object's newest change, or an earlier version.
func (a *extractCache[T]) setSince(name string, before, after *extract[T], version string) {
	if missed := a.unhandledDeletes[name]; missed != nil {
		version = after.newSince(missed.since)
	}
	if before != nil && before.uid == after.uid {
		after.handled = before.handled
		if a.begun(before.value) {
			version = before.since
		}
	}
	if a.begun(after.value) {
		after.since = version
	}
}

// noteDelete keeps before in unhandledDeletes if it is gone, had begun and was not handled. after is nil, or the object
// that now has the name. If after has the same UID, before is not gone.
func (a *extractCache[T]) noteDelete(name string, before, after *extract[T]) {
	if a.tracksDeletes && before != nil && !before.handled && a.begun(before.value) && (after == nil || after.uid != before.uid) {
		a.unhandledDeletes[name] = before
	}
}

// markHandled notes that the follower has announced the object's resource, or has reported its end.
func (a *extractCache[T]) markHandled(name string, uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	missed, e := a.unhandledDeletes[name], a.entries[name]
	if e != nil && e.uid == uid {
		e.handled = true
		delete(a.unhandledDeletes, name)
	}
	if missed != nil && missed.uid == uid {
		delete(a.unhandledDeletes, name)
	}
}

// allUnhandled returns the last unhandled deleted object of each name.
func (a *extractCache[T]) allUnhandled() []*extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.unhandledDeletes))
}

// lastUnhandled returns the last unhandled deleted object of a name. It returns nil if there is none, or if an object has
// the name now.
func (a *extractCache[T]) lastUnhandled(name string) *extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[name] != nil {
		return nil
	}
	return a.unhandledDeletes[name]
}

// Delete implements cache.ReflectorStore.
func (a *extractCache[T]) Delete(object any) error {
	o := object.(metav1.Object)
	name := o.GetName()
	a.mu.Lock()
	before := a.entries[name]
	a.noteDelete(name, before, nil)
	delete(a.entries, name)
	a.version = o.GetResourceVersion()
	a.mu.Unlock()
	a.changed(before, nil)
	return nil
}

// newSince returns version if the object is newer than it. Then the object's resource did not exist at that version.
// Otherwise the version belongs to a history that was rolled back, and newSince returns "".
func (e *extract[T]) newSince(version string) string {
	if !delta.Passes(e.version, version) {
		return ""
	}
	return version
}

// Replace implements cache.ReflectorStore. Except in the first list, a new object was created after the version up to which
// the entries were complete.
func (a *extractCache[T]) Replace(objects []any, version string) error {
	next := make(map[string]*extract[T], len(objects))
	for _, object := range objects {
		if name, e := a.extract(object); e != nil {
			next[name] = e
		}
	}
	a.mu.Lock()
	previous := a.entries
	for name, before := range previous {
		a.noteDelete(name, before, next[name])
	}
	if a.version == "" { // The unhandled objects belong to a history that was rolled back.
		for name, missed := range a.unhandledDeletes {
			undated := *missed
			undated.since, a.unhandledDeletes[name] = "", &undated
		}
	}
	for name, after := range next {
		a.setSince(name, previous[name], after, after.newSince(a.version))
	}
	a.entries, a.version = next, version
	a.health.listed()
	a.mu.Unlock()
	a.announce(previous, next)
	return nil
}

func (a *extractCache[T]) announce(previous, next map[string]*extract[T]) {
	for name, before := range previous {
		if next[name] == nil {
			a.changed(before, nil)
		}
	}
	for name, after := range next {
		a.changed(previous[name], after)
	}
}

// Resync implements cache.ReflectorStore.
func (a *extractCache[T]) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (a *extractCache[T]) UpdateResourceVersion(version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version = version
	a.health.succeed()
}

// extract parses the parts of an object that the cache keeps. It returns nil if the object cannot be parsed, which an API
// server normally prevents.
func (a *extractCache[T]) extract(object any) (string, *extract[T]) {
	if e, ok := object.(*extracted[T]); ok {
		return e.Name, e.extract
	}
	o := object.(*Object)
	value, err := a.parse(o)
	if err != nil {
		a.log.Error("cannot read a definition or an APIService; its resource is not followed", "error", err)
		return o.Name, nil
	}
	return o.Name, &extract[T]{value: value, uid: o.UID, version: o.ResourceVersion}
}
