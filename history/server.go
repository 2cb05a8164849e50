package history

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Document is something that the API server said of itself.
type Document struct {
	Path       string
	ObservedAt time.Time // when it was first seen like this
	Digest     []byte
	Content    []byte // JSON
}

// Documents gives what the API server said of itself at that time, by path: discovery ("/api", "/apis"), "/version", OpenAPI. prefix
// bounds the paths, "" for all: the OpenAPI documents are large. If the first record of a path is later, that is given: a server says
// these things long before somebody asks.
func (r *Record) Documents(ctx context.Context, at time.Time, prefix string) (map[string]Document, error) {
	rows, err := r.pool.Query(ctx, `
		SELECT DISTINCT ON (path) path, observed_at, digest, content::text
		FROM kuberewind.record_server WHERE cluster = $1 AND starts_with(path, $3)
		ORDER BY path, observed_at > $2, CASE WHEN observed_at > $2 THEN observed_at END, observed_at DESC`, r.cluster.Number, at, prefix)
	if err != nil {
		return nil, fmt.Errorf("read what the server said of itself: %w", err)
	}
	documents := make(map[string]Document)
	var d Document
	_, err = pgx.ForEachRow(rows, []any{&d.Path, &d.ObservedAt, &d.Digest, &d.Content}, func() error {
		if d.Content != nil { // nil: it was not served any more
			documents[d.Path] = Document{Path: d.Path, ObservedAt: d.ObservedAt.UTC(), Digest: d.Digest, Content: d.Content}
		}
		d = Document{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what the server said of itself: %w", err)
	}
	return documents, nil
}

// A Resource is one that the server served, as discovery said.
type Resource struct {
	Group, Version, Resource string
	Kind, Singular           string
	ShortNames, Categories   []string
	Verbs                    []string
	Namespaced               bool
	Preferred                bool // its version is the first of its group
}
