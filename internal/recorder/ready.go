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

// readiness is what the recorder answers to whoever asks whether it is ready.
type readiness struct {
	standby atomic.Bool // another recorder records the cluster
	synced  atomic.Bool // the streams that were announced at the start follow the server, or have said why they cannot

	mu sync.Mutex // protects unopened
	// unopened is why streams could not be opened when that was last tried, by their names.
	unopened map[string]error
}

// state says whether every stream follows the server, or has said why it cannot. A standby is ready to take over: were it not, a
// Deployment would never end the leader of the version before.
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
		errs = append(errs, fmt.Errorf("%s is not recorded yet; it is tried again: %w", name, r.unopened[name]))
	}
	return "ok", errors.Join(errs...)
}

// opened notes that the stream of a resource was opened, or why not.
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
