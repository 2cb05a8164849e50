package documents

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/kuberewind/kuberewind/kube"
)

// A Server returns its documents. have holds the hash of each document that the caller has already, by path; such a document
// has a nil Body.
type Server interface {
	Documents(ctx context.Context, have map[string]string) ([]kube.Document, error)
}

// A Record stores documents. A nil body means that the server no longer serves the path.
type Record interface {
	RecordServer(ctx context.Context, path string, body []byte) error
	ServerPaths() []string
}

// Follower records the documents of a server.
type Follower struct {
	Server  Server
	Record  Record
	Release func(version []byte) // receives each new body of /version
	Log     *slog.Logger

	changed chan struct{}
}

// NewFollower returns a follower. Set its fields before Run.
func NewFollower(log *slog.Logger) *Follower {
	return &Follower{Log: log, changed: make(chan struct{}, 1)}
}

// every is the interval of reads while no resource changes.
const every = 10 * time.Minute

// pausesAfterChange holds the pauses between reads after a change. A server publishes discovery and OpenAPI of a new definition some
// seconds after it serves the resource, one after the other.
var pausesAfterChange = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}

// Run records discovery, version and OpenAPI if they changed. It reads them at the start, after resources come or go, and at
// least every eleven minutes. If a server does not answer, Run logs it and retries later. The documents are not deltas, so
// Run opens no gap. Run returns when ctx ends.
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
	if round < len(pausesAfterChange) {
		return pausesAfterChange[round]
	}
	return every + rand.N(every/10)
}

// record records the documents that have does not hold, and adds their hashes to have.
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

// recordUnserved records which paths the server no longer serves. It needs the complete list of the server's documents.
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

// Changed makes Run read the documents now.
func (f *Follower) Changed() {
	select {
	case f.changed <- struct{}{}:
	default: // Run has a pending signal.
	}
}
