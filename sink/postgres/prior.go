package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Prior reads what is on record of a cluster, for a recorder that continues from it. Any goroutine may use it.
type Prior struct {
	pool     *pgxpool.Pool
	cluster  int32
	afterSeq int64     // Info.AfterSeq
	observed time.Time // Info.Observed
	verified time.Time // Info.Verified
}

// Prior returns what is on record of the cluster.
func (s *Sink) Prior() *Prior {
	return &Prior{pool: s.tenure.pool, cluster: s.info.Cluster, afterSeq: s.info.AfterSeq, observed: s.info.Observed, verified: s.info.Verified}
}

// Position returns the resource version from which the stream of a resource in all namespaces can continue, whether it
// is open or not. It returns "" if the stream was never recorded completely.
func (p *Prior) Position(ctx context.Context, group, resource string) (string, error) {
	var position *string
	err := p.pool.QueryRow(ctx, `
		SELECT position FROM kuberewind.streams WHERE cluster = $1 AND api_group = $2 AND resource = $3 AND scope = ''`,
		p.cluster, group, resource).Scan(&position)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("read the position of stream %s/%s: %w", group, resource, explain(err))
	}
	return textOf(position), nil
}

// Registered reports whether a stream of a resource in all namespaces is on record, even without objects.
func (p *Prior) Registered(ctx context.Context, group, resource string) (registered bool, err error) {
	err = p.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kuberewind.streams WHERE cluster = $1 AND api_group = $2 AND resource = $3 AND scope = '')`,
		p.cluster, group, resource).Scan(&registered)
	if err != nil {
		return false, fmt.Errorf("look for stream %s/%s: %w", group, resource, explain(err))
	}
	return registered, nil
}
