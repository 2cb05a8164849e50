package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/migrations"
)

var (
	// ErrKeyMismatch is the error if the cluster's Secrets were hidden with another key (I9).
	ErrKeyMismatch = errors.New("the cluster was recorded with another key for the values of Secrets")
	// ErrNameTaken is the error if another cluster has the name.
	ErrNameTaken = errors.New("another cluster has this name in the record")
)

// open takes over the cluster, and loads the state from which the sink continues.
func (s *Sink) open(ctx context.Context, pool *pgxpool.Pool) error {
	if err := migrations.Check(ctx, pool); err != nil {
		return err
	}
	if err := s.committer.partitions.ensureAhead(ctx); err != nil {
		return err
	}
	t := takeover{cfg: &s.cfg, pool: pool}
	if err := t.run(ctx); err != nil {
		return err
	}
	s.info, s.encoder.head = t.info, t.head
	s.tenure = tenure{pool: pool, cluster: t.info.Cluster, epoch: t.info.Epoch}
	s.committer.cluster = t.info.Cluster
	s.committed.Store(t.head.batch)
	if err := s.encoder.load(ctx, &s.tenure); err != nil {
		return err
	}
	if err := s.sweeps.load(ctx, &s.tenure); err != nil {
		return err
	}
	return s.served.load(ctx)
}

// A takeover registers a cluster if it is new, and begins the epoch of a new writer.
type takeover struct {
	cfg  *Config // with Logger and Now
	pool *pgxpool.Pool
	info Info
	head head
}

const (
	// registerAttempts bounds the retries if clusters that are registered at the same time take each other's number.
	registerAttempts = 20
	// headPatience is the lock_timeout of one attempt. Together, headAttempts of them take a minute.
	headAttempts = 30
	headPatience = "2s"
)

func (t *takeover) run(ctx context.Context) error {
	for registrations, waits := 1, 1; ; {
		err := pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
			return t.beginEpoch(ctx, tx)
		})
		switch {
		case isCode(err, pgerrcode.UniqueViolation) && registrations < registerAttempts:
			registrations++
		case isCode(err, pgerrcode.LockNotAvailable) && waits < headAttempts:
			waits++
			if err := t.evict(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// evict ends the session that holds the head of the record, if that session waits for its own client. A writer that was
// stopped or cut off inside a transaction would otherwise block its successor for as long as its connection seems to
// live. evict does not end a transaction that is running. It does not end an erasure either, which waits for its client
// while that folds lives.
func (t *takeover) evict(ctx context.Context) error {
	return pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		var holder string
		err := tx.QueryRow(ctx, `
			SELECT h.xmax::text FROM kuberewind.heads h JOIN kuberewind.clusters c USING (cluster) WHERE c.uid = $1`, t.cfg.ClusterUID).Scan(&holder)
		if err != nil {
			return ignoreNoRows(err)
		}
		// Only the login of a session may end it, and the writer's role is not that login.
		if _, err := tx.Exec(ctx, `SET LOCAL ROLE NONE`); err != nil {
			return err
		}
		var ended int
		err = tx.QueryRow(ctx, `
			SELECT count(pg_terminate_backend(a.pid))
			FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'transactionid' AND l.transactionid::text = $1 AND l.granted AND a.wait_event = 'ClientRead' AND a.usename = session_user
				AND NOT starts_with(a.application_name, $2)`,
			holder, erasing).Scan(&ended)
		if err == nil && ended > 0 {
			t.cfg.Logger.Warn("ended the session of an earlier writer that held the head of the record and did not answer")
		}
		return err
	})
}

func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

func (t *takeover) beginEpoch(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true)`, headPatience); err != nil {
		return err
	}
	now := t.cfg.Now().UTC().Truncate(time.Microsecond)
	known, err := t.findCluster(ctx, tx)
	if err == nil && !known {
		err = t.registerCluster(ctx, tx, now)
	}
	if err != nil {
		return err
	}
	if err := t.moveEpoch(ctx, tx); err != nil {
		return err
	}
	// I4: the clock may have gone back since the last commit; the record's time does not.
	t.info.Started = times.Later(now, t.info.Observed)
	t.info.Resumed = t.info.Epoch > 1
	_, err = tx.Exec(ctx, `
		INSERT INTO kuberewind.epochs (cluster, epoch, started_at, after_seq, recorder, version, config) VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb)`,
		t.info.Cluster, t.info.Epoch, now, t.info.AfterSeq, clean(t.cfg.Recorder), clean(t.cfg.Version), string(t.cfg.ConfigJSON))
	if err != nil || !t.info.Resumed {
		return err
	}
	err = tx.QueryRow(ctx, `SELECT config::text FROM kuberewind.epochs WHERE cluster = $1 AND epoch < $2 ORDER BY epoch DESC LIMIT 1`, t.info.Cluster, t.info.Epoch).
		Scan(&t.info.Config)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the configuration of the previous recorder: %w", err)
	}
	return nil
}

func (t *takeover) findCluster(ctx context.Context, tx pgx.Tx) (known bool, err error) {
	var name string
	var fingerprint []byte
	err = tx.QueryRow(ctx, `SELECT cluster, name, key_fingerprint FROM kuberewind.clusters WHERE uid = $1`, t.cfg.ClusterUID).
		Scan(&t.info.Cluster, &name, &fingerprint)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case !bytes.Equal(fingerprint, t.cfg.KeyFingerprint):
		// I9: with another key, every Secret would seem to change, and old and new values could not be compared.
		return false, fmt.Errorf("%w (fingerprint %x; this recorder's key has %x): give it the key of the first recording, with --redaction-key-file; a new key needs a new record, in another database (docs/security.md)", ErrKeyMismatch, fingerprint, t.cfg.KeyFingerprint)
	case name == t.cfg.ClusterName:
		return true, nil
	}
	_, err = tx.Exec(ctx, `UPDATE kuberewind.clusters SET name = $2 WHERE cluster = $1`, t.info.Cluster, t.cfg.ClusterName)
	return true, t.nameTaken(err)
}

func (t *takeover) registerCluster(ctx context.Context, tx pgx.Tx, now time.Time) error {
	err := tx.QueryRow(ctx, `
		INSERT INTO kuberewind.clusters AS n (cluster, uid, name, registered_at, key_fingerprint)
		SELECT coalesce(max(c.cluster), 0) + 1, $1, $2, $3, $4 FROM kuberewind.clusters c RETURNING n.cluster`,
		t.cfg.ClusterUID, t.cfg.ClusterName, now, t.cfg.KeyFingerprint).Scan(&t.info.Cluster)
	if err != nil {
		return t.nameTaken(err)
	}
	origin := chain.Genesis(t.cfg.ClusterUID)
	_, err = tx.Exec(ctx, `INSERT INTO kuberewind.heads (cluster, epoch, seq, batch, digest, observed_at, verified_at) VALUES ($1, 0, 0, 0, $2, $3, $3)`,
		t.info.Cluster, origin[:], now)
	return err
}

// nameTaken explains the only duplicate that a retry does not resolve.
func (t *takeover) nameTaken(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == pgerrcode.UniqueViolation && pgErr.ConstraintName == "clusters_name_key" {
		return fmt.Errorf("%w: give this cluster another name than %q", ErrNameTaken, t.cfg.ClusterName)
	}
	return err
}

// moveEpoch makes this sink the cluster's writer. After its commit, the compare-and-swap of any other writer finds no
// row (I1).
func (t *takeover) moveEpoch(ctx context.Context, tx pgx.Tx) error {
	h := &t.head
	var digest []byte
	err := tx.QueryRow(ctx, `
		UPDATE kuberewind.heads SET epoch = epoch + 1 WHERE cluster = $1
		RETURNING epoch, seq, batch, digest, observed_at, spool, coalesce(spool_next, 0), verified_at`, t.info.Cluster).
		Scan(&h.epoch, &h.seq, &h.batch, &digest, &t.info.Observed, &t.info.Offset.Spool, &t.info.Offset.Next, &t.info.Verified)
	if err != nil {
		return fmt.Errorf("take over the head of the record: %w", err)
	}
	h.digest, h.observed = [32]byte(digest), t.info.Observed.UnixMicro()
	t.info.Epoch, t.info.AfterSeq, t.info.Head = h.epoch, h.seq, digest
	return nil
}

// load reads the state from which the encoder continues, except the head.
func (e *encoder) load(ctx context.Context, t *tenure) error {
	e.cluster, e.drafts.cluster = t.cluster, t.cluster
	var day *time.Time
	err := t.pool.QueryRow(ctx, `
		SELECT (SELECT max(day) FROM kuberewind.days WHERE cluster = $1), (SELECT coalesce(max(gap), 0) FROM kuberewind.gaps_data WHERE cluster = $1)`,
		t.cluster).Scan(&day, &e.lastGap)
	e.drafts.lastDay = noDay
	if day != nil {
		e.drafts.lastDay = dayOf(day.UnixMicro())
	}
	return err
}

// noDay is before every day.
const noDay = -1 << 31
