package migrations

import (
	"io"
	"log/slog"
	"strings"

	"github.com/golang-migrate/migrate/v4/database"
)

// A truthful driver is golang-migrate's driver, but returns the applied version and not the noted one.
//
// golang-migrate writes the note in two transactions around the migration. After an interruption the note says "dirty"
// and a version. It does not say whether the migration was committed, or whether it went up or down.
type truthful struct {
	database.Driver
	applied func() (int, error) // reads the version from the schema itself
	before  string              // SQL that runs first in each migration's transaction
	log     *slog.Logger
	failed  error // why the note before the migration could not be written
}

// after clears the note in the migration's own transaction, so that it stays dirty only if the migration was not
// applied.
const after = "\nUPDATE kuberewind.schema_migrations SET dirty = false;\n"

// Version is called by golang-migrate while it holds its lock: no other migrator changes the schema between this and
// Run.
func (t *truthful) Version() (version int, dirty bool, err error) {
	version, err = t.applied()
	if err != nil {
		return 0, false, err
	}
	if version == 0 {
		version = database.NilVersion
	}
	if noted, dirty, err := t.Driver.Version(); err == nil && dirty {
		t.log.Warn("a migration was interrupted; continuing from the applied version", "interrupted", noted, "applied", max(version, 0))
	}
	return version, false, nil
}

// SetVersion keeps an error before the migration for Run. At that time golang-migrate has started a goroutine that ends
// only when Run has read the migration.
func (t *truthful) SetVersion(version int, dirty bool) error {
	err := t.Driver.SetVersion(version, dirty)
	if dirty {
		t.failed = err
		return nil
	}
	return err
}

func (t *truthful) Run(migration io.Reader) error {
	body, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	return t.Driver.Run(strings.NewReader(t.before + string(body) + after))
}
