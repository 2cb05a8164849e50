package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Document is a text in which the API server describes itself.
type Document struct {
	Path       string
	ObservedAt time.Time // when the recorder first saw this content
	Digest     []byte
	Content    []byte // JSON
}

// Server reads the recorded documents of the API server.
type Server struct{ view *view }

// Server returns the reader of the API server's documents.
func (r *Record) Server() Server { return Server{view: r.view} }

// Documents returns the API server's documents at a time, by path: discovery ("/api", "/apis"), "/version", OpenAPI. prefix
// bounds the paths, "" for all: the OpenAPI documents are large. If the first recorded version of a path is later than that
// time, Documents returns it: the server serves such a document long before a client requests it.
func (s Server) Documents(ctx context.Context, at time.Time, prefix string) (map[string]Document, error) {
	rows, err := s.view.db.Query(ctx, `
		SELECT DISTINCT ON (path) path, observed_at, digest, content::text
		FROM kuberewind.record_server WHERE cluster = $1 AND starts_with(path, $3)
		ORDER BY path, observed_at > $2, CASE WHEN observed_at > $2 THEN observed_at END, observed_at DESC`, s.view.cluster.Number, at, prefix)
	if err != nil {
		return nil, fmt.Errorf("read the documents of the server: %w", err)
	}
	documents := make(map[string]Document)
	var d Document
	_, err = pgx.ForEachRow(rows, []any{&d.Path, &d.ObservedAt, &d.Digest, &d.Content}, func() error {
		if d.Content != nil { // nil: the server no longer served it
			documents[d.Path] = Document{Path: d.Path, ObservedAt: d.ObservedAt.UTC(), Digest: d.Digest, Content: d.Content}
		}
		d = Document{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the documents of the server: %w", err)
	}
	return documents, nil
}

// Document returns one of the Documents, and reads no other. found is false if the server did not serve the path at that
// time, or if no recorder recorded it. The query chooses the row before it converts the text: discovery has many versions,
// and each is large.
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
		return Document{}, false, fmt.Errorf("read the document of the server at %s: %w", path, err)
	}
	d.ObservedAt = d.ObservedAt.UTC()
	return d, d.Content != nil, nil
}

// DocumentsChanged returns when the newest of the Documents of a time was first seen, and when the newest of all was. While
// both stay the same, so do the Documents.
func (s Server) DocumentsChanged(ctx context.Context, at time.Time) (by, last time.Time, err error) {
	var early, late *time.Time
	err = s.view.db.QueryRow(ctx, `
		SELECT max(observed_at) FILTER (WHERE observed_at <= $2), max(observed_at) FROM kuberewind.record_server WHERE cluster = $1`,
		s.view.cluster.Number, at).Scan(&early, &late)
	if err != nil {
		return by, last, fmt.Errorf("read when the documents of the server last changed: %w", err)
	}
	return timeOf(early), timeOf(late), nil
}

// A Resource is a resource that the server served, according to discovery.
type Resource struct {
	Group, Version, Resource string
	Kind, Singular           string
	ShortNames, Categories   []string
	Verbs                    []string
	Namespaced               bool
	Preferred                bool // its version is the first of its group
}
