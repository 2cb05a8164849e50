package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// sweepBatch is how many keyframes of a sweep are committed at once.
const sweepBatch = 1000

// further makes a checkpoint of the measured deltas, which is not weighed, and then lets the held events come. The recorder is
// there to record them.
func (r *run) further(ctx context.Context, s *subject, db *pgx.Conn) error {
	var cluster history.Cluster
	if err := db.QueryRow(ctx, `SELECT cluster, name FROM kuberewind.clusters`).Scan(&cluster.Number, &cluster.Name); err != nil {
		return err
	}
	if _, err := r.point(ctx, cluster); err != nil && !errors.Is(err, checkpoint.ErrNothingNew) {
		return err
	}
	if err := r.served.Go(ctx); err != nil {
		return err
	}
	_, err := s.await(ctx, db, r.live+r.bench.events+r.bench.held)
	return err
}

// swept makes the sweep of the next day, of which there is one a day, and weighs it and a checkpoint. The recorder has ended.
func (r *run) swept(ctx context.Context, db *pgx.Conn) error {
	cfg := postgres.Config{URL: r.database, Recorder: "bench", Version: "bench", Now: func() time.Time { return time.Now().AddDate(0, 0, 1) }}
	var number int32
	if err := db.QueryRow(ctx, `SELECT cluster, uid, name, key_fingerprint FROM kuberewind.clusters`).Scan(&number, &cfg.ClusterUID, &cfg.ClusterName, &cfg.KeyFingerprint); err != nil {
		return err
	}
	// The first reader or vacuum of a page writes into the log that its rows are known to be committed. That happens once, and
	// not in each interval.
	if _, err := db.Exec(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	if err := r.timed(&r.out.Upkeep.CheckpointCPU, func() error { return r.checkpointed(ctx, db, history.Cluster{Number: number, Name: cfg.ClusterName}) }); err != nil {
		return err
	}
	sink, err := postgres.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer sink.Close()
	dormant, err := sink.Dormant(ctx)
	if err != nil {
		return err
	}
	before, err := spacesOf(ctx, db)
	if err != nil {
		return err
	}
	if err := r.timed(&r.out.Upkeep.SweepCPU, func() (err error) { r.out.Upkeep.Swept, err = resyncAll(ctx, sink, dormant, cfg.Now()); return err }); err != nil {
		return err
	}
	r.out.Upkeep.Sweep, err = spacesOf(ctx, db)
	s := &r.out.Upkeep.Sweep
	s.Rows, s.Other, s.WAL = s.Rows.minus(before.Rows), s.Other.minus(before.Other), s.WAL-before.WAL
	return err
}

// timed notes what something takes of CPU time, in this process and in PostgreSQL.
func (r *run) timed(into *time.Duration, do func() error) error {
	both := func() (time.Duration, error) {
		own, err := measure.CPUOfSelf()
		if err != nil {
			return 0, err
		}
		server, err := measure.CPUOfTree(r.bench.Server.PID)
		return own + server, err
	}
	before, err := both()
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := both()
	*into = after - before
	return err
}

// point makes a checkpoint as a recorder does, but for its rests.
func (r *run) point(ctx context.Context, cluster history.Cluster) (checkpoint.Info, error) {
	pool, err := pgxpool.New(ctx, r.database)
	if err != nil {
		return checkpoint.Info{}, err
	}
	defer pool.Close()
	return checkpoint.NewMaker(pool, cluster.Number, history.Of(pool, cluster).Source(), checkpoint.Options{Busy: 1}).MakeOne(ctx)
}

// checkpointed makes a checkpoint from the previous one and the held deltas, and weighs it.
func (r *run) checkpointed(ctx context.Context, db *pgx.Conn, cluster history.Cluster) error {
	var newest int64
	if err := db.QueryRow(ctx, `SELECT max(checkpoint) FROM kuberewind.checkpoints WHERE cluster = $1`, cluster.Number).Scan(&newest); err != nil {
		return err
	}
	before, err := spacesOf(ctx, db)
	if err != nil {
		return err
	}
	made, err := r.point(ctx, cluster)
	if err != nil {
		return err
	}
	if r.out.Upkeep.Merged = made.Seq - newest; r.out.Upkeep.Merged < int64(r.bench.held) {
		return fmt.Errorf("the recorder has made a checkpoint at seq %d by itself: %d deltas after it are too few to weigh the next one, which is to have %d", newest, r.out.Upkeep.Merged, r.bench.held)
	}
	after, err := spacesOf(ctx, db)
	r.out.Upkeep.Checkpoint = Spaces{Checkpoints: after.Checkpoints.minus(before.Checkpoints), WAL: after.WAL - before.WAL}
	return err
}

// resyncAll returns how many objects were stored again.
func resyncAll(ctx context.Context, sink *postgres.Sink, specs []postgres.StreamSpec, now time.Time) (objects int, err error) {
	for _, spec := range specs {
		st, err := sink.Stream(ctx, spec)
		if err == nil {
			objects += len(st.Known().ListKeys())
			err = resync(ctx, sink, st, now)
		}
		if err != nil {
			return objects, fmt.Errorf("sweep of %s: %w", spec.Resource, err)
		}
	}
	return objects, nil
}

// resync has the living objects of a stream stored again.
func resync(ctx context.Context, sink *postgres.Sink, st *postgres.Stream, now time.Time) error {
	var items []postgres.Item
	commit := func() error {
		batch, err := sink.Encode(items)
		items = items[:0]
		if err != nil {
			return err
		}
		return sink.Commit(ctx, batch)
	}
	for _, key := range st.Known().ListKeys() {
		known, _, err := st.Known().GetByKey(key)
		object, ok := known.(postgres.KnownObject)
		if err != nil || !ok || !object.NeedsKeyframe(now) {
			return errors.Join(err, fmt.Errorf("%s does not need a keyframe", key))
		}
		items = append(items, postgres.Item{
			Stream: st.ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceResync, Object: object, Version: object.Version(), Observed: now,
		})
		if len(items) == sweepBatch {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	if len(items) == 0 {
		return nil
	}
	return commit()
}
