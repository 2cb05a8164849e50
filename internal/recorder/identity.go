package recorder

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

// identity finds out whether the API server still serves the cluster that it did.
type identity struct {
	host string
	uid  string
	ask  func(context.Context) (types.UID, error)
	// foreign is told once that it does not.
	foreign chan error
	log     *slog.Logger
	unknown sync.Once // said: it may not be asked

	mu    sync.Mutex // protects what follows; held while asking
	began time.Time
	err   error

	waiting sync.Mutex // protects back
	back    chan struct{}
}

// answerFor is how long an answer holds. All streams ask when a server has returned.
const answerFor = time.Second

// askTimeout bounds each question here: a request that nobody answers must not hold the streams up.
const askTimeout = 10 * time.Second

// returned gives a channel that is closed when the server answers again after it did not. Of a nil identity nobody says so.
func (i *identity) returned() <-chan struct{} {
	if i == nil {
		return nil
	}
	i.waiting.Lock()
	defer i.waiting.Unlock()
	if i.back == nil {
		i.back = make(chan struct{})
	}
	return i.back
}

// hasReturned ends all waiting for the return.
func (i *identity) hasReturned() {
	i.waiting.Lock()
	defer i.waiting.Unlock()
	if i.back != nil {
		close(i.back)
		i.back = nil
	}
}

// check asks, or takes the answer to another stream that has asked less than answerFor ago. A nil identity is nobody's.
func (i *identity) check(ctx context.Context) error {
	if i == nil {
		return nil
	}
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
