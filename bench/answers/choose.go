package answers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// wantedPods is how many Pods the Deployment has that is asked about, or a few more.
const wantedPods = 50

const day = 24 * time.Hour

// A subject is what a record is asked about.
type subject struct {
	deployment, namespace string
	pods                  int    // of the Deployment, now
	gone                  string // a Pod of the namespace
	seq, lives, live      int64
	end                   time.Time // of the record
}

func (s *subject) String() string {
	return fmt.Sprintf("%s deltas of %s objects, %s of them live; the Deployment has %d Pods", measure.Number(float64(s.seq)), measure.Number(float64(s.lives)),
		measure.Number(float64(s.live)), s.pods)
}

// since is the flag that begins so long before the end of the record.
func (s *subject) since(ago time.Duration) string {
	return "--since=" + s.end.Add(-ago).UTC().Format(time.RFC3339)
}

// A Pod has the name of its Deployment, a hash of its template, and a suffix. The chosen Deployment has 50 Pods or a few more.
// If none has as many, it is the one with the most.
const chooseDeployment = `
	WITH living AS (
		SELECT s.resource, l.namespace, l.name
		FROM kuberewind.record_living a
		JOIN kuberewind.record_streams s ON s.cluster = a.cluster AND s.stream = a.stream
		JOIN kuberewind.record_lives l ON l.cluster = a.cluster AND l.object_id = a.object_id
	)
	SELECT d.namespace, d.name, count(*)
	FROM living d
	JOIN living p ON p.resource = 'pods' AND p.namespace = d.namespace AND regexp_replace(p.name, '-[^-]+-[^-]+$', '') = d.name
	WHERE d.resource = 'deployments'
	GROUP BY d.namespace, d.name ORDER BY count(*) < $1, abs(count(*) - $1), d.namespace, d.name LIMIT 1`

const chooseGone = `
	SELECT l.name
	FROM kuberewind.record_lives l
	JOIN kuberewind.record_streams s ON s.cluster = l.cluster AND s.stream = l.stream
	WHERE s.resource = 'pods' AND l.namespace = $1 AND l.deleted_seq IS NOT NULL
	ORDER BY l.deleted_seq DESC LIMIT 1`

const sizes = `
	SELECT seq, observed_at, (SELECT count(*) FROM kuberewind.record_lives), (SELECT count(*) FROM kuberewind.record_living)
	FROM kuberewind.record_heads`

// choose finds what to ask about. The record holds one cluster.
func choose(ctx context.Context, url string) (s *subject, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	s = new(subject)
	if err := conn.QueryRow(ctx, chooseDeployment, wantedPods).Scan(&s.namespace, &s.deployment, &s.pods); err != nil {
		return nil, fmt.Errorf("a Deployment with Pods: %w", err)
	}
	if err := conn.QueryRow(ctx, chooseGone, s.namespace).Scan(&s.gone); err != nil {
		return nil, fmt.Errorf("a Pod of namespace %s that is gone: %w", s.namespace, err)
	}
	if err := conn.QueryRow(ctx, sizes).Scan(&s.seq, &s.end, &s.lives, &s.live); err != nil {
		return nil, fmt.Errorf("the size of the record: %w", err)
	}
	return s, nil
}
