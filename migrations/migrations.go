package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/golang-migrate/migrate/v4/source"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Schema is the PostgreSQL schema that holds the record.
const Schema = "kuberewind"

var (
	// ErrMissing is returned by Check if the database holds no record.
	ErrMissing = errors.New("the database holds no record")
	// ErrOlder is returned by Check if migrations of this program are not yet applied.
	ErrOlder = errors.New("the schema of the record is older than this program")
	// ErrUnreleased is returned if the schema is older than the first released schema.
	ErrUnreleased = errors.New("a development build made this record")
	// ErrNewer is returned if a newer program made the schema.
	ErrNewer = errors.New("the schema of the record is newer than this program")
	// ErrNoRights is returned if the login may not even read the version of the schema.
	ErrNoRights = errors.New("this login has no right to the record; its owner can give it one: GRANT " + AuditorRole + " TO the login, or " + WriterRole + " for a recorder")
	// ErrNotOwner is returned by Up and Down if another role made the schema, or an object in it.
	ErrNotOwner = errors.New("another role made the schema of the record, or an object in it")
	// ErrFilled is returned by Down if the record holds deltas.
	ErrFilled = errors.New("the record is not empty")
)

//go:embed *.up.sql *.down.sql
var files embed.FS

// first is the number of the first migration. Development builds made schemas 1 to 105; no program migrates those to
// 110.
const first = 110

// A Querier is a connection, pool or transaction of which Version and Check need one query.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Latest returns the version of the schema that this program knows.
func Latest() int {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are part of the program
	}
	latest := first
	for _, entry := range entries {
		if file, err := source.DefaultParse(entry.Name()); err == nil {
			latest = max(latest, int(file.Version))
		}
	}
	return latest
}

// Version returns the version of the schema in the database, 0 if there is none.
func Version(ctx context.Context, db Querier) (int, error) {
	var version int
	err := db.QueryRow(ctx, `SELECT kuberewind.schema_version()`).Scan(&version)
	switch {
	case err == nil:
		return version, nil
	case hasCode(err, pgerrcode.InvalidSchemaName, pgerrcode.UndefinedFunction):
		return 0, nil
	case hasCode(err, pgerrcode.InsufficientPrivilege):
		return 0, fmt.Errorf("read the version of the schema: %w (%w)", err, ErrNoRights)
	default:
		return 0, fmt.Errorf("read the version of the schema: %w", err)
	}
}

// Check returns nil if this program knows the schema in the database. Otherwise the error names both versions: it is
// ErrMissing, ErrUnreleased, ErrOlder or ErrNewer.
func Check(ctx context.Context, db Querier) error {
	version, err := Version(ctx, db)
	if err != nil {
		return err
	}
	return compare(version, Latest())
}

func compare(version, latest int) error {
	switch {
	case version == latest:
		return nil
	case version == 0:
		return fmt.Errorf("%w: it has no schema %s; make it with \"recorder migrate\"", ErrMissing, Schema)
	case version < first:
		return fmt.Errorf("%w: it has schema %d, and nothing was changed; keep it with that build for reading, and begin a new record in another database (embedded: with another --data-dir)",
			ErrUnreleased, version)
	case version < latest:
		return fmt.Errorf("%w: version %d, and version %d is needed; run \"recorder migrate\"", ErrOlder, version, latest)
	default:
		return fmt.Errorf("%w: version %d, and this program knows up to %d; use a newer program", ErrNewer, version, latest)
	}
}

// hasCode reports whether err carries one of the SQLSTATEs.
func hasCode(err error, codes ...string) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return false
	}
	for _, code := range codes {
		if pgErr.Code == code {
			return true
		}
	}
	return false
}
