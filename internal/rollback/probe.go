package rollback

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	// probeEvery is how long after a probe the next one comes. glanceEvery is how often the newest version is looked at meanwhile,
	// which costs an etcd one read of one key.
	probeEvery  = 10 * time.Second
	glanceEvery = time.Second
)

// KeepProbing finds out whether the history of each etcd is the one on record, until ctx ends. It probes every ten seconds, and looks
// at the newest version each second.
func (r *Streams) KeepProbing(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(glanceEvery)
	defer ticker.Stop()
	for nextProbe := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var err error
		if time.Now().Before(nextProbe) {
			err = r.glance(ctx)
		} else {
			err = r.Probe(ctx)
			nextProbe = time.Now().Add(probeEvery)
		}
		if err != nil && ctx.Err() == nil {
			log.Debug("it was not found out whether the server's history is still the one on record", "error", err)
		}
	}
}

// glance looks at the newest version of each etcd, if that was served since the last glance. If etcd does not hold it, a probe
// finds out why.
func (r *Streams) glance(ctx context.Context) (failed error) {
	for _, s := range r.takeNewest() {
		result, err := s.stream.ask.lookUntilAnswered(ctx, s.servedVersion, s.checkRevision())
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case result == mismatch, result == future:
			return errors.Join(failed, r.Probe(ctx))
		default:
			s.answered(result)
		}
	}
	return failed
}

// takeNewest gives the newest version of each etcd that was served since it was asked last.
func (r *Streams) takeNewest() (taken []*sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.streams {
		if s := c.etcd.newestLocked(); s != nil && c.etcd.lastGlanced != s.key() {
			c.etcd.lastGlanced = s.key()
			taken = append(taken, s)
		}
	}
	return taken
}

// Probe asks each etcd about what is newest of it, and about some of what was served since the last probe.
func (r *Streams) Probe(ctx context.Context) error {
	if err := r.identity.Check(ctx); err != nil {
		return err
	}
	failed := r.grouping.groupSome(ctx)
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
		if !c.canProveLocked() || c.progress.position == 0 || !c.etcd.grouped {
			continue
		}
		if best := furthest[c.etcd]; best == nil || c.progress.position > best.progress.position {
			furthest[c.etcd] = c
		}
	}
	found := make([]*Stream, 0, len(furthest))
	for _, c := range furthest {
		found = append(found, c)
	}
	return found
}
