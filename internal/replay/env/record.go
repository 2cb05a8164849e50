package env

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/mistyped"
)

// Record is an open record. Close closes the database, and stops the embedded PostgreSQL if Open started it.
type Record struct {
	*history.Record
	database *database.Database
}

// Close closes the record.
func (r *Record) Close() error {
	r.Record.Close()
	return r.database.Close()
}

// Records are the open records of one database, one for each cluster. Close closes it.
type Records struct {
	All      []*history.Record
	database *database.Database
}

// Close closes the records.
func (r *Records) Close() error {
	for _, record := range r.All {
		record.Close()
	}
	return r.database.Close()
}

// place is the place of a record: a database, and the name of a cluster in it.
type place struct {
	config  config.Config
	cluster string // "" if the user named none
	log     *slog.Logger
}

func (s *Settings) place(log *slog.Logger) *place {
	return &place{config: config.Config{Storage: config.Storage{Database: s.Database, DataDir: s.DataDir}}, cluster: s.Cluster, log: log}
}

func (p *place) open(ctx context.Context) (*Record, error) {
	db, err := database.OpenRecord(ctx, p.config, p.log)
	if err != nil {
		return nil, err
	}
	rec, err := history.Open(ctx, db.URL(), history.Options{Cluster: p.cluster, Log: p.log})
	if err != nil {
		return nil, errors.Join(p.explain(p.suggest(ctx, db, err)), db.Close())
	}
	return &Record{Record: rec, database: db}, nil
}

// openAll opens the record of every cluster of the database, or only of the named cluster.
func (p *place) openAll(ctx context.Context) (*Records, error) {
	db, err := database.OpenRecord(ctx, p.config, p.log)
	if err != nil {
		return nil, err
	}
	records := &Records{database: db}
	names, err := p.names(ctx, db)
	for _, name := range names {
		var record *history.Record
		if record, err = history.Open(ctx, db.URL(), history.Options{Cluster: name, Log: p.log}); err != nil {
			break
		}
		records.All = append(records.All, record)
	}
	if err != nil {
		return nil, errors.Join(p.explain(p.suggest(ctx, db, err)), records.Close())
	}
	return records, nil
}

// names returns the names of the clusters to open. It always returns at least one name, so that opening an empty record is
// an error.
func (p *place) names(ctx context.Context, db *database.Database) (names []string, err error) {
	if p.cluster != "" {
		return []string{p.cluster}, nil
	}
	all, err := history.Clusters(ctx, db.URL())
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names, nil
}

func (p *place) clusters(ctx context.Context) (_ []history.Cluster, err error) {
	db, err := database.OpenRecord(ctx, p.config, p.log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return history.Clusters(ctx, db.URL())
}

// suggest adds a similar name to the error of an unknown cluster.
func (p *place) suggest(ctx context.Context, db *database.Database, err error) error {
	if !errors.Is(err, history.ErrNoCluster) {
		return err
	}
	all, _ := history.Clusters(ctx, db.URL()) // without the clusters, the error has no suggestion
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	if like := mistyped.Suggest(p.cluster, names); like != "" {
		return fmt.Errorf("%w; did you mean %q?", err, like)
	}
	return err
}

// explain adds the database to an error.
func (p *place) explain(err error) error {
	return fmt.Errorf("database %s: %w", config.MaskURL(p.config.Database), config.Plain(err))
}
