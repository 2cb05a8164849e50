package database

import (
	"errors"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
)

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
