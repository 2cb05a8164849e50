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

	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/migrations"
)

var (
	// ErrKeyMismatch says that the cluster's Secrets were hidden with another key (I9).
	ErrKeyMismatch = errors.New("the cluster was recorded with another key for the values of Secrets")
	// ErrNameTaken says that another cluster has the name.
	ErrNameTaken = errors.New("another cluster has this name in the record")
)

func (s *Sink) open(ctx context.Context) error {
	if err := migrations.Check(ctx, s.pool); err != nil {
		return err
	}
	if err := s.ensureAhead(ctx); err != nil {
		return err
	}
	if err := s.takeOver(ctx); err != nil {
		return err
	}
	if err := s.loadEncoder(ctx); err != nil {
		return err
	}
	if err := s.loadSwept(ctx); err != nil {
		return err
	}
	return s.loadServer(ctx)
}

const (
	// registerAttempts bounds how often two clusters that are registered at once may take each other's number.
	registerAttempts = 20
	// headAttempts times headPatience, which is lock_timeout in the words of PostgreSQL, is a minute.
	headAttempts = 30
	headPatience = "2s"
)

func (s *Sink) takeOver(ctx context.Context) error {
	for registrations, waits := 1, 1; ; {
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			return s.beginEpoch(ctx, tx)
		})
		switch {
		case isCode(err, pgerrcode.UniqueViolation) && registrations < registerAttempts:
			registrations++
		case isCode(err, pgerrcode.LockNotAvailable) && waits < headAttempts:
			waits++
			if err := s.evict(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// evict ends the session that holds the head of the record, if that session waits for its own client. A writer that was
// stopped in mid-transaction, or cut off, would otherwise keep its successor out for as long as its connection seems to live.
// A transaction that is under way may come to its end. So may an erasure, which waits for its client while that folds lives.
func (s *Sink) evict(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var holder string
		err := tx.QueryRow(ctx, `
			SELECT h.xmax::text FROM kuberewind.heads h JOIN kuberewind.clusters c USING (cluster) WHERE c.uid = $1`, s.cfg.ClusterUID).Scan(&holder)
		if err != nil {
			return ignoreNoRows(err)
		}
		// A session may be ended by its own login, which the writer's role is not.
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
			s.log.Warn("a writer before this one does not answer and had the head of the record; its session was ended")
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

func (s *Sink) beginEpoch(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', $1, true)`, headPatience); err != nil {
		return err
	}
	now := s.now().UTC().Truncate(time.Microsecond)
	known, err := s.findCluster(ctx, tx)
	if err == nil && !known {
		err = s.registerCluster(ctx, tx, now)
	}
	if err != nil {
		return err
	}
	if err := s.moveEpoch(ctx, tx); err != nil {
		return err
	}
	// I4: the clock may have gone back since the last commit; the record's time does not.
	s.info.Started = times.Later(now, s.info.Observed)
	s.info.Resumed = s.info.Epoch > 1
	_, err = tx.Exec(ctx, `
		INSERT INTO kuberewind.epochs (cluster, epoch, started_at, after_seq, recorder, version, config) VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb)`,
		s.info.Cluster, s.info.Epoch, now, s.info.AfterSeq, clean(s.cfg.Recorder), clean(s.cfg.Version), string(s.cfg.ConfigJSON))
	if err != nil || !s.info.Resumed {
		return err
	}
	err = tx.QueryRow(ctx, `SELECT config::text FROM kuberewind.epochs WHERE cluster = $1 AND epoch < $2 ORDER BY epoch DESC LIMIT 1`, s.info.Cluster, s.info.Epoch).
		Scan(&s.info.Config)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the configuration of the recorder before: %w", err)
	}
	return nil
}

// StartAfter moves Info.Started behind a moment up to which nothing was seen, or up to which an earlier writer has left what
// it saw. The clock of that writer may have been ahead of this one's. Call it before RecordPause.
func (s *Sink) StartAfter(seen time.Time) {
	s.info.Started = times.Later(s.info.Started, seen.Add(time.Microsecond))
}

// RecordPause puts on record that no recorder saw what happened since the last commit. If an earlier writer has left what it
// saw after that, the pause begins at seen. Call it before the first commit. Until there is a commit, the pause of the next
// writer begins where this one's does.
func (s *Sink) RecordPause(ctx context.Context, seen time.Time) error {
	from := times.Later(s.info.Observed, seen)
	if !s.info.Resumed || from.After(s.info.Started) {
		return nil
	}
	tag, err := s.pool.Exec(ctx, `
		INSERT INTO kuberewind.pauses_data (cluster, epoch, from_at, to_at, after_seq)
		SELECT cluster, epoch, $3, $4, $5 FROM kuberewind.heads WHERE cluster = $1 AND epoch = $2 FOR SHARE`,
		s.info.Cluster, s.info.Epoch, from, s.info.Started, s.info.AfterSeq)
	if err == nil && tag.RowsAffected() == 0 {
		err = s.fenced(ctx)
	}
	if err != nil {
		return fmt.Errorf("record the pause before this recorder: %w", explain(err))
	}
	return nil
}

func (s *Sink) findCluster(ctx context.Context, tx pgx.Tx) (known bool, err error) {
	var name string
	var fingerprint []byte
	err = tx.QueryRow(ctx, `SELECT cluster, name, key_fingerprint FROM kuberewind.clusters WHERE uid = $1`, s.cfg.ClusterUID).
		Scan(&s.info.Cluster, &name, &fingerprint)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case !bytes.Equal(fingerprint, s.cfg.KeyFingerprint):
		// I9: with another key, every Secret would seem to change, and old and new values could not be compared.
		return false, fmt.Errorf("%w (fingerprint %x, and this recorder's key has %x): give it the key that it was first recorded with; a new key begins a new record, in another database (docs/security.md)", ErrKeyMismatch, fingerprint, s.cfg.KeyFingerprint)
	case name == s.cfg.ClusterName:
		return true, nil
	}
	_, err = tx.Exec(ctx, `UPDATE kuberewind.clusters SET name = $2 WHERE cluster = $1`, s.info.Cluster, s.cfg.ClusterName)
	return true, s.nameTaken(err)
}

func (s *Sink) registerCluster(ctx context.Context, tx pgx.Tx, now time.Time) error {
	err := tx.QueryRow(ctx, `
		INSERT INTO kuberewind.clusters AS n (cluster, uid, name, registered_at, key_fingerprint)
		SELECT coalesce(max(c.cluster), 0) + 1, $1, $2, $3, $4 FROM kuberewind.clusters c RETURNING n.cluster`,
		s.cfg.ClusterUID, s.cfg.ClusterName, now, s.cfg.KeyFingerprint).Scan(&s.info.Cluster)
	if err != nil {
		return s.nameTaken(err)
	}
	origin := chain.Genesis(s.cfg.ClusterUID)
	_, err = tx.Exec(ctx, `INSERT INTO kuberewind.heads (cluster, epoch, seq, batch, digest, observed_at) VALUES ($1, 0, 0, 0, $2, $3)`,
		s.info.Cluster, origin[:], now)
	return err
}

// nameTaken explains the one duplicate that another try does not resolve.
func (s *Sink) nameTaken(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == pgerrcode.UniqueViolation && pgErr.ConstraintName == "clusters_name_key" {
		return fmt.Errorf("%w: give this one another name than %q", ErrNameTaken, s.cfg.ClusterName)
	}
	return err
}

// moveEpoch makes this the cluster's writer. From its commit on, the compare-and-swap of any other finds no row (I1).
func (s *Sink) moveEpoch(ctx context.Context, tx pgx.Tx) error {
	h := &s.encoder.head
	var digest []byte
	err := tx.QueryRow(ctx, `
		UPDATE kuberewind.heads SET epoch = epoch + 1 WHERE cluster = $1
		RETURNING epoch, seq, batch, digest, observed_at, spool, coalesce(spool_next, 0)`, s.info.Cluster).
		Scan(&h.epoch, &h.seq, &h.batch, &digest, &s.info.Observed, &s.info.Offset.Spool, &s.info.Offset.Next)
	if err != nil {
		return fmt.Errorf("take over the head of the record: %w", err)
	}
	h.digest, h.observed = [32]byte(digest), s.info.Observed.UnixMicro()
	s.info.Epoch, s.info.AfterSeq, s.info.Head = h.epoch, h.seq, digest
	return nil
}

// loadEncoder reads what the encoder goes on from, apart from the head.
func (s *Sink) loadEncoder(ctx context.Context) error {
	e := &s.encoder
	e.cluster, e.chain, e.now, e.hooks = s.info.Cluster, chain.New(), s.now, s.cfg.Hooks
	e.rewrote = &s.rewrote
	e.latest = make(map[objectKey]*draft)
	s.committed.Store(e.head.batch)
	var day *time.Time
	err := s.pool.QueryRow(ctx, `
		SELECT (SELECT max(day) FROM kuberewind.days WHERE cluster = $1), (SELECT coalesce(max(gap), 0) FROM kuberewind.gaps_data WHERE cluster = $1)`,
		s.info.Cluster).Scan(&day, &e.lastGap)
	e.lastDay = noDay
	if day != nil {
		e.lastDay = dayOf(day.UnixMicro())
	}
	return err
}

// noDay is before every day.
const noDay = -1 << 31
