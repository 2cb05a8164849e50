package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A DB is a pool, a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A Store reads the checkpoints of a cluster.
type Store struct {
	DB      DB
	Cluster int32 // its number in the record
}

// An Info describes a checkpoint.
type Info struct {
	Seq        int64
	ObservedAt time.Time // of that seq
	MadeAt     time.Time
	Objects    int64
	Blocks     int64
	Bytes      int64
	Digest     []byte
	Streams    map[int32]string // newest resource version of each stream
}

// List returns at most limit checkpoints up to a seq, newest first.
func (s Store) List(ctx context.Context, upTo, limit int64) ([]Info, error) {
	rows, err := s.DB.Query(ctx, `
		SELECT checkpoint, observed_at, made_at, objects, blocks, bytes, digest, streams
		FROM kuberewind.record_checkpoints WHERE cluster = $1 AND checkpoint <= $2 ORDER BY checkpoint DESC LIMIT $3`,
		s.Cluster, upTo, limit)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints of the record: %w", err)
	}
	infos, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Info, err error) {
		err = row.Scan(&c.Seq, &c.ObservedAt, &c.MadeAt, &c.Objects, &c.Blocks, &c.Bytes, &c.Digest, &c.Streams)
		c.ObservedAt, c.MadeAt = c.ObservedAt.UTC(), c.MadeAt.UTC()
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints of the record: %w", err)
	}
	return infos, nil
}

// Has reports whether a checkpoint of a seq exists.
func (s Store) Has(ctx context.Context, seq int64) (there bool, err error) {
	err = s.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kuberewind.record_checkpoints WHERE cluster = $1 AND checkpoint = $2)`, s.Cluster, seq).Scan(&there)
	if err != nil {
		return false, fmt.Errorf("look for checkpoint %d: %w", seq, err)
	}
	return there, nil
}
