package history

import (
	"context"
	"errors"
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

// Server is what a record holds of the API server itself.
type Server struct{ view *view }

// Server gives what the record holds of the API server itself.
func (r *Record) Server() Server { return Server{view: r.view} }

// Documents gives what the API server said of itself at that time, by path: discovery ("/api", "/apis"), "/version", OpenAPI.
// prefix bounds the paths, "" for all: the OpenAPI documents are large. If the first record of a path is later, that is given:
// a server says these things long before a client asks.
func (s Server) Documents(ctx context.Context, at time.Time, prefix string) (map[string]Document, error) {
	rows, err := s.view.db.Query(ctx, `
		SELECT DISTINCT ON (path) path, observed_at, digest, content::text
		FROM kuberewind.record_server WHERE cluster = $1 AND starts_with(path, $3)
		ORDER BY path, observed_at > $2, CASE WHEN observed_at > $2 THEN observed_at END, observed_at DESC`, s.view.cluster.Number, at, prefix)
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

// Document gives one of Documents, and reads no other. found is false if the server did not serve the path at that time, or if it was never
// recorded. The row is chosen before its text is made: discovery has many versions, and each is large.
func (s Server) Document(ctx context.Context, at time.Time, path string) (d Document, found bool, err error) {
	err = s.view.db.QueryRow(ctx, `
		SELECT path, observed_at, digest, content::text FROM (
			SELECT path, observed_at, digest, content FROM kuberewind.record_server WHERE cluster = $1 AND path = $3
			ORDER BY observed_at > $2, CASE WHEN observed_at > $2 THEN observed_at END, observed_at DESC LIMIT 1) chosen`,
		s.view.cluster.Number, at, path).Scan(&d.Path, &d.ObservedAt, &d.Digest, &d.Content)
	if errors.Is(err, pgx.ErrNoRows) {
		return Document{}, false, nil
	}
	if err != nil {
		return Document{}, false, fmt.Errorf("read what the server said at %s: %w", path, err)
	}
	d.ObservedAt = d.ObservedAt.UTC()
	return d, d.Content != nil, nil
}

// DocumentsChanged says when the last of the Documents of that time was first seen, and the last of all. While both stay, so do the Documents.
func (s Server) DocumentsChanged(ctx context.Context, at time.Time) (by, last time.Time, err error) {
	var early, late *time.Time
	err = s.view.db.QueryRow(ctx, `
		SELECT max(observed_at) FILTER (WHERE observed_at <= $2), max(observed_at) FROM kuberewind.record_server WHERE cluster = $1`,
		s.view.cluster.Number, at).Scan(&early, &late)
	if err != nil {
		return by, last, fmt.Errorf("read when the server last said something new of itself: %w", err)
	}
	return timeOf(early), timeOf(late), nil
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
