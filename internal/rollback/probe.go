package rollback

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// glanceEvery is how often the newest version is checked between two probes. That costs etcd one read of one key.
const glanceEvery = time.Second

// KeepProbing checks until ctx ends whether the history of each etcd is still the recorded one. It probes ten seconds
// after the last probe, and checks the newest version each second.
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
			log.Debug("rollback check failed; retrying", "error", err)
		}
	}
}

// glance checks the newest version of each etcd, if a newer one was served since the last glance. If etcd does not
// hold it, glance starts a probe, which finds out why.
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

// takeNewest returns the newest version of each etcd, if a newer one was served since the last glance.
func (r *Streams) takeNewest() (taken []*sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.streams {
		if s := c.etcd.newestToCheckLocked(); s != nil && c.etcd.lastGlanced != s.key() {
			c.etcd.lastGlanced = s.key()
			taken = append(taken, s)
		}
	}
	return taken
}

// Probe assigns a few streams to their etcd. Then it checks one stream of each etcd, and the samples.
func (r *Streams) Probe(ctx context.Context) error {
	if err := r.identity.Check(ctx); err != nil {
		return err
	}
	failed := r.grouping.groupSome(ctx)
	for _, c := range r.newestOfEach() {
		failed = errors.Join(failed, checkNewest(ctx, c, 0))
	}
	return errors.Join(failed, r.lookBack(ctx))
}

// newestOfEach returns, for each etcd, the stream with the highest position.
func (r *Streams) newestOfEach() []*Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	furthest := map[*etcdState]*Stream{}
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
