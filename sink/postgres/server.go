package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/patch"
)

var errDocument = errors.New("not a JSON document")

// A serverState is the last recorded document of the server at a path.
type serverState struct {
	digest   []byte // nil if the server no longer served one
	observed time.Time
}

// served records the documents in which the API server describes itself, by path.
type served struct {
	tenure *tenure
	now    func() time.Time

	mu   sync.Mutex             // held while a document is recorded
	last map[string]serverState // last recorded document of each path, protected by mu
}

// RecordServer records the document in which the API server describes itself at a path, such as /version, if it has
// changed. If content is nil, the server no longer serves the path. Equal contents are stored once. The error may be
// ErrFenced; ClassOf says whether a retry may help. Any goroutine may call it.
func (s *Sink) RecordServer(ctx context.Context, path string, content []byte) error {
	if err := s.served.record(ctx, clean(path), content); err != nil {
		return fmt.Errorf("record the server document at %s: %w", path, explain(err))
	}
	return nil
}

// ServerPaths returns the paths at which the server served a document when it was last recorded, in no order.
func (s *Sink) ServerPaths() []string { return s.served.paths() }

func (s *served) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for path, state := range s.last {
		if state.digest != nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func (s *served) record(ctx context.Context, path string, content []byte) error {
	var digest []byte
	if content != nil {
		if !json.Valid(content) {
			return errDocument
		}
		content, _ = patch.SafeForSQL(content)
		sum := sha256.Sum256(content)
		digest = sum[:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[path]
	if known && bytes.Equal(last.digest, digest) || !known && digest == nil {
		return nil
	}
	now := serverState{digest: digest, observed: s.now().UTC().Truncate(time.Microsecond)}
	if !now.observed.After(last.observed) {
		now.observed = last.observed.Add(time.Microsecond)
	}
	err := pgx.BeginFunc(ctx, s.tenure.pool, func(tx pgx.Tx) error { return s.insert(ctx, tx, path, content, now) })
	if err == nil {
		s.last[path] = now
	}
	return err
}

func (s *served) insert(ctx context.Context, tx pgx.Tx, path string, content []byte, now serverState) error {
	if _, err := s.tenure.hold(ctx, tx); err != nil {
		return err
	}
	if content != nil {
		_, err := tx.Exec(ctx, `INSERT INTO kuberewind.documents (cluster, digest, content) VALUES ($1, $2, $3::json) ON CONFLICT DO NOTHING`,
			s.tenure.cluster, now.digest, string(content))
		if err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO kuberewind.server_data (cluster, path, observed_at, digest) VALUES ($1, $2, $3, $4)`,
		s.tenure.cluster, path, now.observed, now.digest)
	return err
}

func (s *served) load(ctx context.Context) error {
	rows, err := s.tenure.pool.Query(ctx, `
		SELECT DISTINCT ON (path) path, digest, observed_at FROM kuberewind.server_data
		WHERE cluster = $1 ORDER BY path, observed_at DESC`, s.tenure.cluster)
	if err != nil {
		return err
	}
	var path string
	var state serverState
	_, err = pgx.ForEachRow(rows, []any{&path, &state.digest, &state.observed}, func() error {
		s.last[path] = serverState{digest: bytes.Clone(state.digest), observed: state.observed}
		return nil
	})
	return err
}
