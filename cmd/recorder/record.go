package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/migrations"
)

// withRecord opens an existing record, calls do with a connection to it, and closes it. If the record does not have this program's
// schema, it returns an EnvironmentError.
func (p *program) withRecord(cmd *cobra.Command, do func(ctx context.Context, cfg config.Config, db *database.Database, conn *pgx.Conn) error) (err error) {
	cfg, log, err := p.loadQuietly(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	db, err := database.OpenRecord(ctx, cfg, log)
	if err != nil {
		return &recorder.EnvironmentError{Err: err}
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Connect(ctx)
	if err != nil {
		return &recorder.EnvironmentError{Err: err}
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := migrations.Check(ctx, conn); err != nil {
		return &recorder.EnvironmentError{Err: err}
	}
	return do(ctx, cfg, db, conn)
}
