package kube

import (
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// albumPatience is after how many failures in a row a first list is given up for now.
const albumPatience = 3

// access is whether the resource of an album can be followed.
type access struct {
	resource Resource
	log      *slog.Logger
	settled  chan struct{} // closed once the resource was listed or cannot be
	once     sync.Once

	mu       sync.Mutex // protects what follows
	failed   error      // why the resource cannot be followed, nil if it can
	failures int        // in a row
}

func newAccess(resource Resource, log *slog.Logger) *access {
	return &access{resource: resource, log: log, settled: make(chan struct{})}
}

// fail notes that the resource could not be listed or watched. listed says whether it was listed before.
func (a *access) fail(err error, listed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures++
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if !refused && (listed || a.failures < albumPatience) {
		a.log.Warn("following is interrupted", "resource", a.resource.String(), "error", err)
		return
	}
	if a.failed == nil {
		a.log.Warn("cannot be followed: changes are found by periodic discovery", "resource", a.resource.String(), "error", err)
	}
	a.failed = err
	a.settle()
}

// listed notes that the resource was listed.
func (a *access) listed() {
	a.works()
	a.settle()
}

// works notes that the resource can be followed.
func (a *access) works() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed, a.failures = nil, 0
}

func (a *access) settle() { a.once.Do(func() { close(a.settled) }) }

// trouble is why the entries of the album are not to be trusted, nil if they are.
func (a *access) trouble() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}
