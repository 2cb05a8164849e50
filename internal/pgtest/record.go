package pgtest

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/migrations"
)

// EmptyRecord is the Setup of a database that holds an empty record, with the roles of it.
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
