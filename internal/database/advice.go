package database

import (
	"errors"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/migrations"
)

// named adds the address of the database to an error, without its password. If it knows what to do, it adds that, too.
func (d *Database) named(err error) error {
	err = config.Plain(err)
	if advice := advise(err); advice != "" {
		err = fmt.Errorf("%w (%s)", err, advice)
	}
	return fmt.Errorf("database %s: %w", config.MaskURL(d.url), err)
}

// Refused adds the address of the database, and what to do, to the error of a statement. It returns other errors unchanged. The error of
// a connection names the database already.
func (d *Database) Refused(err error) error {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	if refusal.Code == pgerrcode.InsufficientPrivilege {
		err = fmt.Errorf("%w (the login needs to be a member of %s: run \"recorder migrate\")", err, migrations.WriterRole)
	}
	return d.named(err)
}

func advise(err error) string {
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal):
		return adviceByCode[refusal.Code]
	case errors.As(err, new(*pgconn.ConnectError)):
		return "does PostgreSQL run there? --database says where it is"
	}
	return ""
}

var adviceByCode = map[string]string{
	pgerrcode.InvalidPassword:                   "check the user and the password in --database",
	pgerrcode.InvalidAuthorizationSpecification: "check the user and the password in --database",
	pgerrcode.InvalidCatalogName:                "make it with CREATE DATABASE, or name another one in --database",
	pgerrcode.TooManyConnections:                "a recorder needs a few: raise the limit of the database, the role or the server",
	pgerrcode.ReadOnlySQLTransaction:            "this server takes no writes: name the primary in --database, or lift default_transaction_read_only",
}
