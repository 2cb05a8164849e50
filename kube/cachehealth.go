package kube

import (
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// firstListTries is the number of failures in a row after which begin no longer waits for a first list.
const firstListTries = 3

// cacheHealth records whether the resource of an extractCache can be listed and watched.
type cacheHealth struct {
	resource Resource
	log      *slog.Logger
	decided  chan struct{} // closed once the resource was listed, or is known not to be listable
	once     sync.Once

	mu       sync.Mutex // protects what follows
	failed   error      // why the resource cannot be followed, nil if it can
	failures int        // in a row
}

func newCacheHealth(resource Resource, log *slog.Logger) *cacheHealth {
	return &cacheHealth{resource: resource, log: log, decided: make(chan struct{})}
}

// fail notes that a list or watch failed. listed reports whether a list has succeeded before.
func (a *cacheHealth) fail(err error, listed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures++
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if !refused && (listed || a.failures < firstListTries) {
		a.log.Warn("list or watch failed; will retry", "resource", a.resource.String(), "error", err)
		return
	}
	if a.failed == nil {
		a.log.Warn("definitions or APIServices cannot be watched; new resources are found once a minute", "resource", a.resource.String(), "error", err)
	}
	a.failed = err
	a.decide()
}

// listed notes that the resource was listed.
func (a *cacheHealth) listed() {
	a.succeed()
	a.decide()
}

// succeed notes that the resource can be followed.
func (a *cacheHealth) succeed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed, a.failures = nil, 0
}

func (a *cacheHealth) decide() { a.once.Do(func() { close(a.decided) }) }

// err returns why the entries of the cache cannot be trusted, or nil if they can.
func (a *cacheHealth) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}
