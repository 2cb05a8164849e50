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
	return fmt.Sprintf("%s serves another cluster: the UID of its namespace kube-system is %s, and the UID on record is %s; nothing of it was recorded. "+
		"If the address is wrong, correct --kubeconfig or --context. To record that cluster, set another --cluster-name", e.Host, e.Found, e.Recorded)
}

// Identity checks whether the API server still serves the recorded cluster.
type Identity struct {
	host    string
	uid     string
	ask     func(context.Context) (types.UID, error)
	foreign chan error
	log     *slog.Logger
	unknown sync.Once // logs once that the recorder may not read the UID

	mu    sync.Mutex // protects the fields below; held while asking
	began time.Time
	err   error

	waiting sync.Mutex // protects back
	back    chan struct{}
}

// NewIdentity returns the Identity of the cluster with a UID. The function ask reads the current UID from the API server at host.
func NewIdentity(host, uid string, ask func(context.Context) (types.UID, error), log *slog.Logger) *Identity {
	return &Identity{host: host, uid: uid, ask: ask, foreign: make(chan error, 1), log: log}
}

// Foreign returns a channel. It receives a *ForeignClusterError, once, if the API server serves another cluster.
func (i *Identity) Foreign() <-chan error { return i.foreign }

// answerFor is how long an answer is valid. When a server is back, all streams check at once.
const answerFor = time.Second

// askTimeout bounds each request, so that a server that does not answer does not block the streams.
const askTimeout = 10 * time.Second

// Returned returns a channel that is closed when the server answers again after a failure.
func (i *Identity) Returned() <-chan struct{} {
	i.waiting.Lock()
	defer i.waiting.Unlock()
	if i.back == nil {
		i.back = make(chan struct{})
	}
	return i.back
}

// hasReturned closes the channel of Returned.
func (i *Identity) hasReturned() {
	i.waiting.Lock()
	defer i.waiting.Unlock()
	if i.back != nil {
		close(i.back)
		i.back = nil
	}
}

// Check reads the UID of the cluster and compares it. If another caller has done so less than a second ago, Check returns that answer. The
// error is a *ForeignClusterError, or the reason why there is no answer. If the recorder may not read the UID, Check returns nil.
func (i *Identity) Check(ctx context.Context) error {
	earliest := time.Now().Add(-answerFor)
	i.mu.Lock()
	defer i.mu.Unlock()
	var foreign *ForeignClusterError
	// If another caller was cancelled, its error is no answer for this one.
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
		// The server may still serve the streams. NotFound is different: a cluster without that namespace has just been made.
		i.unknown.Do(func() {
			i.log.Warn("cannot check whether this is still the same cluster; the streams go on", "error", i.err)
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
