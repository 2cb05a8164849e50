package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/chain"
)

// streams holds the open streams of a cluster. It registers new ones, and folds the objects of streams on record.
type streams struct {
	tenure   *tenure
	now      func() time.Time
	log      *slog.Logger   // names the cluster
	unfolded func(Mismatch) // may be nil

	registering sync.Mutex // held while a stream is given its number
	mu          sync.RWMutex
	byID        map[int32]*Stream // protected by mu, as is byKey
	byKey       map[streamKey]*Stream
}

// Stream opens a stream. It registers the stream, or finds it and folds its living objects from the record. While it
// folds, it needs memory for one more object than it keeps. If the stream is already open, Stream returns it with the
// new version and kind. The error is ErrFenced if another writer holds the cluster.
func (s *Sink) Stream(ctx context.Context, spec StreamSpec) (*Stream, error) {
	st, err := s.streams.open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open stream %s/%s of scope %q: %w", spec.Group, spec.Resource, spec.Scope, explain(err))
	}
	return st, nil
}

func (r *streams) open(ctx context.Context, spec StreamSpec) (*Stream, error) {
	if st := r.opened(spec.key()); st != nil {
		if err := r.respecify(ctx, st.id, &spec); err != nil {
			return nil, err
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		st.spec = spec
		return st, nil
	}
	st := &Stream{spec: spec}
	err := r.find(ctx, st)
	if errors.Is(err, pgx.ErrNoRows) {
		err = r.register(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	st.publish()
	r.mu.Lock()
	defer r.mu.Unlock()
	if opened := r.byKey[spec.key()]; opened != nil {
		return opened, nil // by another goroutine, in the meantime
	}
	r.byID[st.id], r.byKey[spec.key()] = st, st
	return st, nil
}

func (r *streams) opened(key streamKey) *Stream {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byKey[key]
}

func (r *streams) numbered(id int32) *Stream {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// all iterates over the open streams. No stream is added meanwhile.
func (r *streams) all() iter.Seq[*Stream] {
	return func(yield func(*Stream) bool) {
		r.mu.RLock()
		defer r.mu.RUnlock()
		for _, st := range r.byID {
			if !yield(st) {
				return
			}
		}
	}
}

// respecify stores version and kind, which are attributes of a stream and not part of its identity.
func (r *streams) respecify(ctx context.Context, id int32, spec *StreamSpec) error {
	tag, err := r.tenure.pool.Exec(ctx, `
		UPDATE kuberewind.streams s SET version = $3, kind = $4, namespaced = $5
		FROM (SELECT cluster FROM kuberewind.heads WHERE cluster = $1 AND epoch = $6 FOR SHARE) h
		WHERE s.cluster = h.cluster AND s.stream = $2`,
		r.tenure.cluster, id, spec.Version, spec.Kind, spec.Namespaced, r.tenure.epoch)
	if err == nil && tag.RowsAffected() == 0 {
		err = r.tenure.fenced(ctx)
	}
	return err
}

func (r *streams) find(ctx context.Context, st *Stream) error {
	var position, lastRV *string
	var positionedAt, stateSince time.Time
	w := &st.work
	err := r.tenure.pool.QueryRow(ctx, `
		SELECT stream, position, last_rv, last_seq, synced, bookmarks, positioned_at, state, state_since, detail, filter, schema, synced AND last_seq = 0
			AND NOT EXISTS (SELECT FROM kuberewind.gaps_data g WHERE g.cluster = s.cluster AND g.stream = s.stream)
		FROM kuberewind.streams s WHERE cluster = $1 AND api_group = $2 AND resource = $3 AND scope = $4`,
		r.tenure.cluster, st.spec.Group, st.spec.Resource, st.spec.Scope,
	).Scan(&st.id, &position, &lastRV, &w.lastSeq, &w.synced, &w.bookmarks, &positionedAt, &w.state, &stateSince, &w.detail, &w.filter, &w.schema, &st.empty)
	if err != nil {
		return err
	}
	w.at = delta.Position{Complete: textOf(position), Newest: textOf(lastRV)}
	w.positionedAt, w.stateSince = positionedAt.UnixMicro(), stateSince.UnixMicro()
	if err := r.respecify(ctx, st.id, &st.spec); err != nil {
		return err
	}
	if err := r.loadGap(ctx, st); err != nil {
		return err
	}
	if err := r.loadExcluded(ctx, st); err != nil {
		return err
	}
	return r.loadKnown(ctx, st)
}

// register gives the stream a number. It registers one at a time, because the number is the highest plus one. It
// registers none while another writer takes over: that writer would find the stream only when it registers the same
// stream.
func (r *streams) register(ctx context.Context, st *Stream) error {
	r.registering.Lock()
	defer r.registering.Unlock()
	now := r.now()
	w := &st.work
	*w = streamState{state: delta.StateListing, stateSince: now.UnixMicro(), positionedAt: now.UnixMicro(), filter: st.spec.Filter, schema: clean(st.spec.Schema)}
	if st.spec.StartRV != "" {
		w.state, w.synced, w.at = delta.StateLive, true, delta.At(st.spec.StartRV)
		st.empty = true
	}
	err := r.tenure.pool.QueryRow(ctx, `
		INSERT INTO kuberewind.streams (cluster, stream, api_group, resource, scope, version, kind, namespaced, started_at,
			state, state_since, detail, filter, position, last_rv, last_seq, synced, bookmarks, positioned_at, schema)
		SELECT h.cluster, numbered.next, $3, $4, $5, $6, $7, $8, $9, $10, $9, '', $11, $12, $12, 0, $13, false, $9, $14
		FROM (SELECT cluster FROM kuberewind.heads WHERE cluster = $1 AND epoch = $2 FOR SHARE) h
		CROSS JOIN (SELECT coalesce(max(o.stream), 0) + 1 AS next FROM kuberewind.streams o WHERE o.cluster = $1) numbered
		RETURNING stream`,
		r.tenure.cluster, r.tenure.epoch, st.spec.Group, st.spec.Resource, st.spec.Scope, st.spec.Version, st.spec.Kind, st.spec.Namespaced, now,
		w.state, w.filter, nullable(w.at.Complete), w.synced, w.schema,
	).Scan(&st.id)
	if errors.Is(err, pgx.ErrNoRows) {
		return r.tenure.fenced(ctx)
	}
	st.registered = err == nil
	return err
}

// loadGap finds the gap that an earlier recorder did not close.
func (r *streams) loadGap(ctx context.Context, st *Stream) error {
	g := gap{Gap: chain.Gap{Stream: st.id}}
	var fromAt *time.Time
	err := r.tenure.pool.QueryRow(ctx, `
		SELECT gap, cause, detail, from_rv, from_at, opened_batch FROM kuberewind.gaps_data
		WHERE cluster = $1 AND stream = $2 AND closed_batch IS NULL ORDER BY gap DESC LIMIT 1`, r.tenure.cluster, st.id,
	).Scan(&g.Number, &g.Cause, &g.Detail, &g.FromRV, &fromAt, &g.opened)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	g.FromAt = microsOf(fromAt)
	st.work.gap, st.work.inherited = &g, true
	return nil
}

func (r *streams) loadExcluded(ctx context.Context, st *Stream) error {
	rows, err := r.tenure.pool.Query(ctx, `SELECT uid FROM kuberewind.exclusions WHERE cluster = $1 AND stream = $2`, r.tenure.cluster, st.id)
	if err != nil {
		return err
	}
	uids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, uid := range uids {
		st.setExcluded(types.UID(uid), true)
	}
	return nil
}
