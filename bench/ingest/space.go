package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Space is bytes on disk.
type Space struct{ Heap, Toast, Index int64 }

func (s Space) total() int64 { return s.Heap + s.Toast + s.Index }

func (s Space) minus(o Space) Space {
	return Space{s.Heap - o.Heap, s.Toast - o.Toast, s.Index - o.Index}
}

// Spaces are those of a database, by what is in the tables.
type Spaces struct {
	Rows        Space // the deltas, or the full rows
	Other       Space // lives, batches, streams and the like
	Checkpoints Space
	WAL         int64 // position in the log
}

// spacesOf adds up all tables of a database. Tables beside a table count with its index.
func spacesOf(ctx context.Context, db *pgx.Conn) (s Spaces, err error) {
	rows, err := db.Query(ctx, `
		SELECT CASE WHEN relname ~ '^(deltas_|full_rows)' THEN 'rows' WHEN relname ~ '^checkpoint' THEN 'checkpoints' ELSE 'other' END,
			coalesce(sum(pg_table_size(c.oid) - toast), 0)::bigint, coalesce(sum(toast), 0)::bigint, coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint
		FROM pg_class c, LATERAL (SELECT CASE WHEN reltoastrelid = 0 THEN 0 ELSE pg_total_relation_size(reltoastrelid) END AS toast) t
		WHERE relkind = 'r' AND relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('kuberewind', 'public')) GROUP BY 1`)
	if err != nil {
		return s, err
	}
	var kind string
	var found Space
	if _, err := pgx.ForEachRow(rows, []any{&kind, &found.Heap, &found.Toast, &found.Index}, func() error {
		switch kind {
		case "rows":
			s.Rows = found
		case "checkpoints":
			s.Checkpoints = found
		default:
			s.Other = found
		}
		return nil
	}); err != nil {
		return s, fmt.Errorf("sizes of tables: %w", err)
	}
	return s, db.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&s.WAL)
}

// A commit says when a version was committed, as the server dates it.
type commit struct {
	group, resource string
	rv              uint64
	at              time.Time
}

// storedAgain holds of a delta with the source resync: no event, but a row that each living object gets in each day. In a run
// over midnight there are some.
const storedAgain = `source = 4`

// commitsAfter gives the rows of the events after the first so many rows.
func commitsAfter(ctx context.Context, db *pgx.Conn, ours bool, first int) ([]commit, error) {
	query := `SELECT api_group, resource, resource_version::text, pg_xact_commit_timestamp(xmin) FROM full_rows WHERE id > $1`
	if ours {
		query = `SELECT s.api_group, s.resource, d.rv, pg_xact_commit_timestamp(d.xmin)
			FROM kuberewind.deltas_data d JOIN kuberewind.streams s USING (cluster, stream) WHERE seq > $1 AND NOT ` + storedAgain
	}
	rows, err := db.Query(ctx, query, first)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c commit, err error) {
		var rv string
		if err := row.Scan(&c.group, &c.resource, &rv, &c.at); err != nil {
			return c, err
		}
		_, err = fmt.Sscan(rv, &c.rv)
		return c, err
	})
}

// storedAfter gives what the rows of the events after the first so many rows take, in tables and TOAST, by type.
func storedAfter(ctx context.Context, db *pgx.Conn, ours bool, first int) (map[string]int64, error) {
	query := `SELECT type, sum(pg_column_size(r.*)) FROM full_rows r WHERE id > $1 GROUP BY 1`
	if ours {
		query = `SELECT (ARRAY['ADDED', 'MODIFIED', 'DELETED', 'SYNC'])[type], sum(pg_column_size(d.*)) FROM kuberewind.deltas_data d WHERE seq > $1 AND NOT ` + storedAgain + ` GROUP BY 1`
	}
	rows, err := db.Query(ctx, query, first)
	if err != nil {
		return nil, err
	}
	stored := map[string]int64{}
	var of string
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&of, &bytes}, func() error {
		stored[of] = bytes
		return nil
	})
	return stored, err
}
