package recorder

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readiness is the state behind /readyz.
type readiness struct {
	standby atomic.Bool // another recorder records the cluster
	synced  atomic.Bool // the streams that discovery found at the start follow the server, or have reported why they cannot

	mu sync.Mutex // protects unopened
	// unopened holds the error of the last attempt to open a stream, by the name of its resource.
	unopened map[string]error
}

// state returns an error if a stream neither follows the server nor has reported why it cannot. A standby is ready. If it were not, a
// Deployment that is updated would never end the old leader.
func (r *readiness) state() (state string, err error) {
	switch {
	case r.standby.Load():
		return "standby", nil
	case !r.synced.Load():
		return "", errors.New("the streams are being opened")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.unopened)) {
		errs = append(errs, fmt.Errorf("%s is not recorded yet; retrying: %w", name, r.unopened[name]))
	}
	return "ok", errors.Join(errs...)
}

// opened notes whether the stream of a resource was opened. If err is not nil, it says why it was not.
func (r *readiness) opened(gr schema.GroupResource, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.unopened, gr.String())
		return
	}
	if r.unopened == nil {
		r.unopened = map[string]error{}
	}
	r.unopened[gr.String()] = err
}
