package rollback

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// probeEvery is how often each etcd is asked whether its history is the one on record. It costs one read of one key.
const probeEvery = 10 * time.Second

// Follow looks now and then whether the history of each etcd is the one on record, until ctx ends.
func (r *Streams) Follow(ctx context.Context, log *slog.Logger) {
	for {
		timer := time.NewTimer(probeEvery + rand.N(probeEvery/5))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := r.Probe(ctx); err != nil && ctx.Err() == nil {
			log.Debug("it was not found out whether the server's history is still the one on record", "error", err)
		}
	}
}

// Probe asks each etcd about what is newest of it, and about some of what was served since the last probe.
func (r *Streams) Probe(ctx context.Context) error {
	if err := r.identity.Check(ctx); err != nil {
		return err
	}
	failed := r.ties.some(ctx)
	for _, c := range r.newestOfEach() {
		failed = errors.Join(failed, verify(ctx, c, 0))
	}
	return errors.Join(failed, r.lookBack(ctx))
}

// newestOfEach is, of each etcd, the stream that has come furthest.
func (r *Streams) newestOfEach() []*Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	furthest := map[*etcd]*Stream{}
	for _, c := range r.streams {
		if !c.provesLocked() || c.place.position == 0 || !c.etcd.tied {
			continue
		}
		if best := furthest[c.etcd]; best == nil || c.place.position > best.place.position {
			furthest[c.etcd] = c
		}
	}
	found := make([]*Stream, 0, len(furthest))
	for _, c := range furthest {
		found = append(found, c)
	}
	return found
}
