package database

import (
	"context"
	"errors"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// KeyOf returns the recorded fingerprint of a cluster's redaction key, or nil if there is none.
func KeyOf(ctx context.Context, conn *pgx.Conn, uid string) (fingerprint []byte, err error) {
	err = conn.QueryRow(ctx, `SELECT key_fingerprint FROM kuberewind.clusters WHERE uid = $1`, uid).Scan(&fingerprint)
	var refused *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &refused) && (refused.Code == pgerrcode.UndefinedTable || refused.Code == pgerrcode.InvalidSchemaName) {
		return nil, nil
	}
	return fingerprint, err
}
