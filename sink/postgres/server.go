package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/patch"
)

var errDocument = errors.New("not a JSON document")

// A serverState is the last record of what the server said at a path.
type serverState struct {
	digest   []byte // nil if it said nothing any more
	observed time.Time
}

// RecordServer records what the API server says of itself at a path, such as /version, if it has changed. If content is nil,
// the server does not serve the path any more. Contents are kept once. The error may be ErrFenced; ClassOf says whether it is
// worth another try. Any goroutine may call it.
func (s *Sink) RecordServer(ctx context.Context, path string, content []byte) error {
	if err := s.recordServer(ctx, clean(path), content); err != nil {
		return fmt.Errorf("record what the server says at %s: %w", path, explain(err))
	}
	return nil
}

// ServerPaths are the paths at which the server said something when it was last recorded, in no order.
func (s *Sink) ServerPaths() []string {
	s.serverMu.Lock()
	defer s.serverMu.Unlock()
	var paths []string
	for path, state := range s.server {
		if state.digest != nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func (s *Sink) recordServer(ctx context.Context, path string, content []byte) error {
	var digest []byte
	if content != nil {
		if !json.Valid(content) {
			return errDocument
		}
		content, _ = patch.SafeForSQL(content)
		sum := sha256.Sum256(content)
		digest = sum[:]
	}
	s.serverMu.Lock()
	defer s.serverMu.Unlock()
	last, known := s.server[path]
	if known && bytes.Equal(last.digest, digest) || !known && digest == nil {
		return nil
	}
	now := serverState{digest: digest, observed: s.now().UTC().Truncate(time.Microsecond)}
	if !now.observed.After(last.observed) {
		now.observed = last.observed.Add(time.Microsecond)
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.insertServer(ctx, tx, path, content, now) })
	if err == nil {
		s.server[path] = now
	}
	return err
}

func (s *Sink) insertServer(ctx context.Context, tx pgx.Tx, path string, content []byte, now serverState) error {
	if _, err := s.hold(ctx, tx); err != nil {
		return err
	}
	if content != nil {
		_, err := tx.Exec(ctx, `INSERT INTO kuberewind.documents (cluster, digest, content) VALUES ($1, $2, $3::json) ON CONFLICT DO NOTHING`,
			s.info.Cluster, now.digest, string(content))
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO kuberewind.server_data (cluster, path, observed_at, digest) VALUES ($1, $2, $3, $4)`,
		s.info.Cluster, path, now.observed, now.digest)
	return err
}

func (s *Sink) loadServer(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, `
		SELECT DISTINCT ON (path) path, digest, observed_at FROM kuberewind.server_data
		WHERE cluster = $1 ORDER BY path, observed_at DESC`, s.info.Cluster)
	if err != nil {
		return err
	}
	var path string
	var state serverState
	_, err = pgx.ForEachRow(rows, []any{&path, &state.digest, &state.observed}, func() error {
		s.server[path] = serverState{digest: bytes.Clone(state.digest), observed: state.observed}
		return nil
	})
	return err
}
