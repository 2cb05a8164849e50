package pgtest

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/migrations"
)

// EmptyRecord is the Setup of a database with an empty record and its roles.
func EmptyRecord(ctx context.Context, conn *pgx.Conn) error {
	if err := migrations.Up(ctx, conn.Config().ConnString(), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	missing, err := migrations.Roles(ctx, conn)
	if err == nil && missing != "" {
		return fmt.Errorf("roles are missing: %s", missing)
	}
	return err
}
