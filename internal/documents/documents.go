package documents

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/kuberewind/kuberewind/kube"
)

// A Server says what it is.
type Server interface {
	Documents(ctx context.Context, have map[string]string) ([]kube.Document, error)
}

// A Record takes documents. A nil body says that a path is served no more.
type Record interface {
	RecordServer(ctx context.Context, path string, body []byte) error
	ServerPaths() []string
}

// Follower records what a server says of itself.
type Follower struct {
	Server  Server
	Record  Record
	Release func(version []byte) // is told of /version
	Log     *slog.Logger

	changed chan struct{}
}

// NewFollower makes a follower. Its fields are set before Run.
func NewFollower(log *slog.Logger) *Follower {
	return &Follower{Log: log, changed: make(chan struct{}, 1)}
}

// every is how often the server is asked what it says of itself when nothing suggests that it changed.
const every = 10 * time.Minute

// settle is when it is asked again after something changed: a server publishes discovery and OpenAPI of a new
// definition some seconds after it serves it, one after the other.
var settle = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}

// Run records discovery, version and OpenAPI whenever they change: at the start, whenever resources come and go,
// and now and then. A server that does not answer is asked again later; its documents are not deltas, so nothing is a gap.
func (f *Follower) Run(ctx context.Context) error {
	have := map[string]string{}
	for round := 0; ; round++ {
		if err := f.record(ctx, have); err != nil && ctx.Err() == nil {
			f.Log.Warn("recording the server's discovery, OpenAPI or version failed", "error", err)
		}
		timer := time.NewTimer(pause(round))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-f.changed:
			timer.Stop()
			round = -1
		case <-timer.C:
		}
	}
}

func pause(round int) time.Duration {
	if round < len(settle) {
		return settle[round]
	}
	return every + rand.N(every/10)
}

// record records what have does not hold, and notes it there.
func (f *Follower) record(ctx context.Context, have map[string]string) error {
	documents, err := f.Server.Documents(ctx, have)
	for _, d := range documents {
		if d.Body == nil {
			continue
		}
		if err := f.Record.RecordServer(ctx, d.Path, d.Body); err != nil {
			return err
		}
		have[d.Path] = d.Hash
		if d.Path == "/version" {
			f.Release(d.Body)
		}
	}
	if err != nil {
		return err
	}
	return f.recordUnserved(ctx, documents, have)
}

// recordUnserved notes what the server does not say any more. It needs all that the server says.
func (f *Follower) recordUnserved(ctx context.Context, documents []kube.Document, have map[string]string) error {
	served := map[string]bool{}
	for _, d := range documents {
		served[d.Path] = true
	}
	for _, path := range f.Record.ServerPaths() {
		if served[path] {
			continue
		}
		if err := f.Record.RecordServer(ctx, path, nil); err != nil {
			return err
		}
		delete(have, path)
	}
	return nil
}

// Changed has the server asked what it says of itself now.
func (f *Follower) Changed() {
	select {
	case f.changed <- struct{}{}:
	default: // It has been told already.
	}
}
