package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/migrations"
)

func (p *program) migrateCommand() *cobra.Command {
	var down, force bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema and its roles up to date",
		Long: "Bring the schema and its roles up to date. --database may name a login with more rights than the recorder's own.\n" +
			"If that login may not make roles, the command prints the SQL that an administrator must run.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if force && !down {
				return mistake(cmd, errors.New("--force goes with --down"))
			}
			return p.migrate(cmd, down, force)
		},
	}
	cmd.Flags().BoolVar(&down, "down", false, "remove the schema instead; refused if it holds a record")
	cmd.Flags().BoolVar(&force, "force", false, "with --down: remove the schema even if it holds a record")
	concerns(cmd, databaseSettings...)
	return cmd
}

func (p *program) migrate(cmd *cobra.Command, down, force bool) error {
	cfg, log, err := p.load(cmd)
	if err != nil {
		return err
	}
	open := database.Open
	if down {
		open = database.OpenRecord
	}
	db, err := open(cmd.Context(), cfg, log)
	if err != nil {
		return &recorder.EnvironmentError{Err: err}
	}
	if down {
		err = p.migrateDown(cmd.Context(), db, log, force)
	} else {
		err = p.migrateUp(cmd.Context(), db, log)
	}
	return errors.Join(err, db.Close())
}

func (p *program) migrateUp(ctx context.Context, db *database.Database, log *slog.Logger) error {
	missing, err := db.Migrate(ctx)
	if err != nil {
		return &recorder.EnvironmentError{Err: err}
	}
	log.Info("the schema is up to date", "version", migrations.Latest())
	if missing != "" {
		log.Warn("this login may not set up the roles: let an administrator run the SQL that follows")
		fmt.Fprint(p.out, missing)
	}
	return nil
}

func (p *program) migrateDown(ctx context.Context, db *database.Database, log *slog.Logger, force bool) error {
	err := migrations.Down(ctx, db.URL(), force)
	switch {
	case errors.Is(err, migrations.ErrFilled):
		return fmt.Errorf("%w with --down --force", err)
	case err != nil:
		return &recorder.EnvironmentError{Err: err}
	}
	log.Info("the record is removed")
	return nil
}
