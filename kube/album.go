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

// album keeps an extract of every object of one resource, by name, and keeps it
// current. client-go's reflector drives it: what that one folds or repeats does not
// matter here, where only the newest state counts.
type album[T any] struct {
	lister *ListWatch
	parse  func(*Object) (*T, error)
	// begun reports whether what the object stands for has begun.
	begun func(*T) bool
	// taking says that resources that have begun are followed, and that missed ones count.
	taking bool
	// changed is called after each change, without the lock. before or after is nil
	// for what was not there or is there no more.
	changed func(before, after *extract[T])
	log     *slog.Logger
	again   chan struct{} // holds an element when the resource is to be listed anew
	access  *access

	mu      sync.Mutex // protects what follows
	entries map[string]*extract[T]
	missed  map[string]*extract[T] // by name, what had begun and was deleted before anybody took it: the last, with the since of the first
	version string                 // up to which entries are complete, empty before the first list
}

// extract is what is kept of an object. A definition can be a megabyte, of which a
// follower needs a few hundred bytes.
type extract[T any] struct {
	value   *T
	uid     types.UID
	version string // resource version of the object
	// since is the resource version at which the object's resource has begun, or an earlier one. It is empty if that began
	// before following did. If earlier resources of the name were missed, it is that of the first.
	since string
	taken bool // somebody follows its resource; protected by the album's lock
}

func newAlbum[T any](lister *ListWatch, log *slog.Logger) *album[T] {
	return &album[T]{lister: lister, log: log, again: make(chan struct{}, 1), access: newAccess(lister.resource, log),
		entries: map[string]*extract[T]{}, missed: map[string]*extract[T]{}}
}

// albumPage bounds the memory of a list, of whose items only extracts stay.
const albumPage = 50

// run follows the resource until the context ends.
func (a *album[T]) run(ctx context.Context) {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 30 * time.Second}
	_ = backoff.DelayWithReset(clock.RealClock{}, 2*time.Minute).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		a.follow(ctx)
		return false, nil
	})
}

// follow lists and watches until that fails, or is to begin anew.
func (a *album[T]) follow(ctx context.Context) {
	watched, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	anew := false // may be read when it has ended
	go func() {
		defer close(ended)
		select {
		case <-watched.Done():
		case <-a.again:
			anew = true
			cancel()
		}
	}()
	silent := klog.Logger{}
	reflector := cache.NewReflectorWithOptions(&extractLister[T]{ListWatch: a.lister, album: a, ctx: watched}, nil, a, cache.ReflectorOptions{
		Logger: &silent, Name: "kube", TypeDescription: a.lister.resource.String(),
	})
	reflector.WatchListPageSize = albumPage
	err := reflector.ListAndWatchWithContext(watched)
	cancel()
	<-ended
	switch {
	case anew:
		a.mu.Lock()
		a.version = "" // It is of another history.
		a.mu.Unlock()
	case err != nil && ctx.Err() == nil:
		a.mu.Lock()
		listed := a.version != ""
		a.mu.Unlock()
		a.access.fail(err, listed)
	}
}

// listAnew has the resource listed instead of watched on from where it is. The begin of objects that are new in that list is
// not known.
func (a *album[T]) listAnew() {
	select {
	case a.again <- struct{}{}:
	default: // It is about to be.
	}
}

// get returns what is known of an object, nil if there is none of the name.
func (a *album[T]) get(name string) *extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entries[name]
}

// missing returns a resource version at which there was no object of the name, empty if there is one.
func (a *album[T]) missing(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[name] != nil {
		return ""
	}
	return a.version
}

// all returns what is known of all objects.
func (a *album[T]) all() []*extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*extract[T], 0, len(a.entries))
	for _, e := range a.entries {
		all = append(all, e)
	}
	return all
}

// Add implements cache.ReflectorStore.
func (a *album[T]) Add(object any) error { return a.put(object) }

// Update implements cache.ReflectorStore.
func (a *album[T]) Update(object any) error { return a.put(object) }

func (a *album[T]) put(object any) error {
	name, after := a.extract(object)
	if after == nil {
		return nil
	}
	a.mu.Lock()
	before := a.entries[name]
	a.miss(name, before, after)
	a.date(name, before, after, object.(*Object).ResourceVersion)
	a.entries[name] = after
	a.mu.Unlock()
	a.changed(before, after)
	return nil
}

// date settles since, given the resource version at or before which what is new of
// the object became so.
func (a *album[T]) date(name string, before, after *extract[T], version string) {
	if missed := a.missed[name]; missed != nil {
		version = after.newSince(missed.since)
	}
	if before != nil && before.uid == after.uid {
		after.taken = before.taken
		if a.begun(before.value) {
			version = before.since
		}
	}
	if a.begun(after.value) {
		after.since = version
	}
}

// miss notes that an object that nobody took is gone. after, if not nil, may be the same object.
func (a *album[T]) miss(name string, before, after *extract[T]) {
	if a.taking && before != nil && !before.taken && a.begun(before.value) && (after == nil || after.uid != before.uid) {
		a.missed[name] = before
	}
}

// take notes that what an object stands for is followed from its since on, or was said to have ended.
func (a *album[T]) take(name string, uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	missed, e := a.missed[name], a.entries[name]
	if e != nil && e.uid == uid {
		e.taken = true
		delete(a.missed, name)
	}
	if missed != nil && missed.uid == uid {
		delete(a.missed, name)
	}
}

// allMissed gives what was missed last, of each name.
func (a *album[T]) allMissed() []*extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.missed))
}

// lastMissed is the last object under a name that has none now, nil if that object was taken.
func (a *album[T]) lastMissed(name string) *extract[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[name] != nil {
		return nil
	}
	return a.missed[name]
}

// Delete implements cache.ReflectorStore.
func (a *album[T]) Delete(object any) error {
	o := object.(metav1.Object)
	name := o.GetName()
	a.mu.Lock()
	before := a.entries[name]
	a.miss(name, before, nil)
	delete(a.entries, name)
	a.version = o.GetResourceVersion()
	a.mu.Unlock()
	a.changed(before, nil)
	return nil
}

// newSince is a version up to which the object's new resources did not exist. It is empty if the object is not newer, so that
// the version must be of a history that is gone.
func (e *extract[T]) newSince(version string) string {
	if !delta.Passes(e.version, version) {
		return ""
	}
	return version
}

// Replace implements cache.ReflectorStore. Objects that are new in a list, unless it is the first, came after the version up to
// which the entries were complete.
func (a *album[T]) Replace(objects []any, version string) error {
	next := make(map[string]*extract[T], len(objects))
	for _, object := range objects {
		if name, e := a.extract(object); e != nil {
			next[name] = e
		}
	}
	a.mu.Lock()
	previous := a.entries
	for name, before := range previous {
		a.miss(name, before, next[name])
	}
	if a.version == "" { // The missed objects are of a history that is gone.
		for name, missed := range a.missed {
			undated := *missed
			undated.since, a.missed[name] = "", &undated
		}
	}
	for name, after := range next {
		a.date(name, previous[name], after, after.newSince(a.version))
	}
	a.entries, a.version = next, version
	a.access.listed()
	a.mu.Unlock()
	a.announce(previous, next)
	return nil
}

func (a *album[T]) announce(previous, next map[string]*extract[T]) {
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
func (a *album[T]) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (a *album[T]) UpdateResourceVersion(version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version = version
	a.access.works()
}

// extract takes what matters from an object; it is nil if the object makes no sense,
// which an API server does not serve.
func (a *album[T]) extract(object any) (string, *extract[T]) {
	if e, ok := object.(*extracted[T]); ok {
		return e.Name, e.extract
	}
	o := object.(*Object)
	value, err := a.parse(o)
	if err != nil {
		a.log.Error("an object that describes an API cannot be read; its resource is not followed", "error", err)
		return o.Name, nil
	}
	return o.Name, &extract[T]{value: value, uid: o.UID, version: o.ResourceVersion}
}
