package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// ForeignClusterError says that the API server serves another cluster than the one that is being recorded.
type ForeignClusterError struct{ Host, Recorded, Found string }

func (e *ForeignClusterError) Error() string {
	return fmt.Sprintf("%s serves another cluster: the UID of its namespace kube-system is %s, and that of the one on record %s; the record of that ends here. "+
		"Start the recorder again, with a --cluster-name of its own, to record the new one", e.Host, e.Found, e.Recorded)
}

// Identity finds out whether the API server still serves the cluster that it did.
type Identity struct {
	host    string
	uid     string
	ask     func(context.Context) (types.UID, error)
	foreign chan error
	log     *slog.Logger
	unknown sync.Once // said: it may not be asked

	mu    sync.Mutex // protects what follows; held while asking
	began time.Time
	err   error

	waiting sync.Mutex // protects back
	back    chan struct{}
}

// NewIdentity gives that of the cluster with a UID. The API server is at a host, and is asked for the UID that it has now.
func NewIdentity(host, uid string, ask func(context.Context) (types.UID, error), log *slog.Logger) *Identity {
	return &Identity{host: host, uid: uid, ask: ask, foreign: make(chan error, 1), log: log}
}

// Foreign is told once that it is another cluster, with a *ForeignClusterError.
func (i *Identity) Foreign() <-chan error { return i.foreign }

// answerFor is how long an answer holds. All streams ask when a server has returned.
const answerFor = time.Second

// askTimeout bounds each question: a request that nobody answers must not hold the streams up.
const askTimeout = 10 * time.Second

// Returned gives a channel that is closed when the server answers again after it did not.
func (i *Identity) Returned() <-chan struct{} {
	i.waiting.Lock()
	defer i.waiting.Unlock()
	if i.back == nil {
		i.back = make(chan struct{})
	}
	return i.back
}

// hasReturned ends all waiting for the return.
func (i *Identity) hasReturned() {
	i.waiting.Lock()
	defer i.waiting.Unlock()
	if i.back != nil {
		close(i.back)
		i.back = nil
	}
}

// Check asks, or takes the answer to somebody else who has asked less than a second ago. The error is a *ForeignClusterError,
// or why there is no answer. A server that may not be asked is taken for the same.
func (i *Identity) Check(ctx context.Context) error {
	earliest := time.Now().Add(-answerFor)
	i.mu.Lock()
	defer i.mu.Unlock()
	var foreign *ForeignClusterError
	// That somebody else was called off is no answer.
	answered := i.began.After(earliest) && (i.err == nil || ctx.Err() != nil || !errors.Is(i.err, context.Canceled))
	if answered || errors.As(i.err, &foreign) {
		return i.err
	}
	i.began = time.Now()
	failed := i.err != nil
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var found types.UID
	found, i.err = i.ask(ctx)
	switch {
	case apierrors.IsForbidden(i.err):
		// The streams may be served all the same. A cluster without that namespace, though, is one that has just begun.
		i.unknown.Do(func() {
			i.log.Warn("whether this is still the same cluster cannot be asked; the streams go on", "error", i.err)
		})
		i.err = nil
	case i.err == nil && string(found) != i.uid:
		i.err = &ForeignClusterError{Host: i.host, Recorded: i.uid, Found: string(found)}
		i.foreign <- i.err
	}
	if failed && i.err == nil {
		i.hasReturned()
	}
	return i.err
}
