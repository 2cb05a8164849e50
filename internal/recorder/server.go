package recorder

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/kuberewind/kuberewind/kube"
)

// documentsEvery is how often the server is asked what it says of itself when nothing suggests that it changed.
const documentsEvery = 10 * time.Minute

// documentsSettle is when it is asked again after something changed: a server publishes discovery and OpenAPI of a new
// definition some seconds after it serves it, one after the other.
var documentsSettle = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}

// followServer records discovery, version and OpenAPI whenever they change: at the start, whenever resources come and go,
// and now and then. A server that does not answer is asked again later; its documents are not deltas, so nothing is a gap.
func (r *Recorder) followServer(ctx context.Context) error {
	have := map[string]string{}
	for round := 0; ; round++ {
		if err := r.recordServer(ctx, have); err != nil && ctx.Err() == nil {
			r.log.Warn("what the server says of itself was not recorded in full", "error", err)
		}
		timer := time.NewTimer(documentsPause(round))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-r.resourcesChanged:
			timer.Stop()
			round = -1
		case <-timer.C:
		}
	}
}

func documentsPause(round int) time.Duration {
	if round < len(documentsSettle) {
		return documentsSettle[round]
	}
	return documentsEvery + rand.N(documentsEvery/10)
}

// recordServer records what have does not hold, and notes it there.
func (r *Recorder) recordServer(ctx context.Context, have map[string]string) error {
	documents, err := r.client.Documents(ctx, have)
	for _, d := range documents {
		if d.Body == nil {
			continue
		}
		if err := r.sink.RecordServer(ctx, d.Path, d.Body); err != nil {
			return err
		}
		have[d.Path] = d.Hash
		if d.Path == "/version" {
			r.schemas.release(d.Body)
		}
	}
	if err != nil {
		return err
	}
	return r.recordUnserved(ctx, documents, have)
}

// recordUnserved notes what the server does not say any more. It needs all that the server says.
func (r *Recorder) recordUnserved(ctx context.Context, documents []kube.Document, have map[string]string) error {
	served := map[string]bool{}
	for _, d := range documents {
		served[d.Path] = true
	}
	for _, path := range r.sink.ServerPaths() {
		if served[path] {
			continue
		}
		if err := r.sink.RecordServer(ctx, path, nil); err != nil {
			return err
		}
		delete(have, path)
	}
	return nil
}

// discovered is told of each discovery.
func (r *Recorder) discovered(_ context.Context, d *kube.Discovery) {
	if len(d.Failed) > 0 {
		r.metrics.DiscoveryFails.Inc()
	}
	for gv, err := range d.Failed {
		r.log.Warn("a group version cannot be discovered; what is recorded of it goes on, what is new in it has to wait", "group_version", gv.String(), "error", err)
	}
}

// noteChange has the server asked what it says of itself now.
func (r *Recorder) noteChange() {
	select {
	case r.resourcesChanged <- struct{}{}:
	default: // It has been told already.
	}
}
