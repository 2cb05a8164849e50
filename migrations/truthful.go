package migrations

import (
	"io"
	"log/slog"
	"strings"

	"github.com/golang-migrate/migrate/v4/database"
)

// truthful is golang-migrate's driver, except that it goes by the applied migrations and not by the note of them.
//
// The note is written in two transactions around that of the migration. After an interruption it says "dirty" and a version. It
// does not tell whether the migration was committed, or whether it went up or down.
type truthful struct {
	database.Driver
	applied func() (int, error) // the version of the schema, as the schema says itself
	before  string              // SQL that runs first in each migration's transaction
	log     *slog.Logger
	failed  error // why the note before the migration could not be written
}

// after clears the note in the migration's own transaction, so that it stays dirty only if nothing was applied.
const after = "\nUPDATE kuberewind.schema_migrations SET dirty = false;\n"

// Version is called by golang-migrate when it holds its lock: nobody else changes the schema between this and Run.
func (t *truthful) Version() (version int, dirty bool, err error) {
	version, err = t.applied()
	if err != nil {
		return 0, false, err
	}
	if version == 0 {
		version = database.NilVersion
	}
	if noted, dirty, err := t.Driver.Version(); err == nil && dirty {
		t.log.Warn("a migration was interrupted, going on from what was applied", "interrupted", noted, "applied", max(version, 0))
	}
	return version, false, nil
}

// SetVersion keeps an error before the migration for Run. By then golang-migrate has started a goroutine that ends only when
// Run has read the migration.
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
