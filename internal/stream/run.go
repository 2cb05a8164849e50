package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

// Run is one reflector and the FIFO that it feeds.
type Run struct {
	served    kube.Resource // the resource in the requested version
	fifo      *deltafifo.FIFO
	reflector *reflector.Reflector
	listing   atomic.Bool // since a list began, or was due from the beginning, until the list ends
	// These describe that list. The reflector owns them until done. If the recorder knows more than the server,
	// listDetail is set.
	listCause  delta.Cause
	listDetail string
	closed     atomic.Int64 // when the last watch was closed, in nanoseconds since 1970

	mu       sync.Mutex    // protects the fields below
	gone     chan struct{} // closed while the server says that it does not serve the resource
	followed bool          // the resource was followed until the server said so
	outlived bool          // another definition existed since, and was not followed

	stop context.CancelCauseFunc
	done chan struct{}
}

var errStreamStopped = errors.New("the stream was stopped")

// Running reports whether the reflector has not ended. There may be no run.
func (r *Run) Running() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// Halt ends the reflector and its waiting calls, and waits for it. Its queued entries stay queued.
func (r *Run) Halt() {
	r.stop(errStreamStopped)
	r.fifo.Close()
	<-r.done
}

// markGone notes that the resource is not served any more, and whether it was followed up to then.
func (r *Run) markGone(followed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isGoneLocked() {
		r.followed = followed
		close(r.gone)
	}
}

// markServed notes that the resource may be served again. The earlier state no longer counts.
func (r *Run) markServed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isGoneLocked() {
		r.gone, r.followed = make(chan struct{}), false
	}
}

func (r *Run) isGoneLocked() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// Gone returns a channel that is closed when the server says that it does not serve the resource.
func (r *Run) Gone() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// Concluded reports whether the resource was watched until it was not served any more.
func (r *Run) Concluded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isGoneLocked() && r.followed && !r.outlived
}

// OutlivedBy notes the definition that has ended. If the run followed another definition, its end is not the end of
// that one.
func (r *Run) OutlivedBy(ended kube.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outlived = r.outlived || r.served.DefinitionUID != "" && r.served.DefinitionUID != ended.DefinitionUID
}
