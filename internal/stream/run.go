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
	served    kube.Resource // as it is asked for
	fifo      *deltafifo.FIFO
	reflector *reflector.Reflector
	listing   atomic.Bool // since a list was begun, or due from the beginning, that has not come to its end
	// Of that list; they belong to the reflector until done. The detail is there where the recorder knows better than the server.
	listCause  delta.Cause
	listDetail string
	closed     atomic.Int64 // when the last watch was, in nanoseconds since 1970

	mu       sync.Mutex    // protects what follows
	gone     chan struct{} // closed while the server says that it does not serve the resource
	followed bool          // it was, up to when the server said so
	outlived bool          // there was another definition since, which was not followed

	stop context.CancelCauseFunc
	done chan struct{}
}

var errStreamStopped = errors.New("the stream was stopped")

// Runs reports whether the reflector has not ended. There may be no run.
func (r *Run) Runs() bool {
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

// Halt ends the reflector, and what it may be waiting for, and waits for it. What it has queued stays queued.
func (r *Run) Halt() {
	r.stop(errStreamStopped)
	r.fifo.Close()
	<-r.done
}

// leaves notes that the resource is not served any more, and whether it was followed up to then.
func (r *Run) leaves(followed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hasLeftLocked() {
		r.followed = followed
		close(r.gone)
	}
}

// returns notes that it may be served again: how it left counts no more.
func (r *Run) returns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasLeftLocked() {
		r.gone, r.followed = make(chan struct{}), false
	}
}

func (r *Run) hasLeftLocked() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// Left is closed when the server says that it does not serve the resource.
func (r *Run) Left() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// Concluded reports whether the resource was watched up to when it was not served any more.
func (r *Run) Concluded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasLeftLocked() && r.followed && !r.outlived
}

// OutlivedBy notes what has ended. Where that is of another definition than what was followed, the end of the run is not that one's.
func (r *Run) OutlivedBy(ended kube.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outlived = r.outlived || r.served.DefinitionUID != "" && r.served.DefinitionUID != ended.DefinitionUID
}
