package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// revisionFresh is how long the server may still return an erased value.
const revisionFresh = 2 * time.Second

// A revision caches the newest revision of a record. Each dropped day and each erasure makes a new one.
type revision struct {
	record *history.Record

	mu      sync.Mutex // protects what follows
	newest  int64
	checked time.Time
}

// now returns the record's revision, at most revisionFresh old.
func (r *revision) now(ctx context.Context) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checked) < revisionFresh {
		return r.newest, nil
	}
	newest, err := r.record.Completeness().Revision(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	r.newest, r.checked = newest, time.Now()
	return newest, nil
}
