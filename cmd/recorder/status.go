package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/reports"
	"github.com/kuberewind/kuberewind/internal/status"
)

func (p *program) statusCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is recorded, how far, and what is wrong",
		Long: "Show, from the database, whether a recorder records now, what is recorded, how far, and which streams do not follow the\n" +
			"cluster. Show also the deltas in the spool, if it is on this machine. The recorder need not be running.",
		Example: `  recorder status                # the streams that do not follow the cluster
  recorder status --output wide  # all streams`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			var found status.Record
			err := p.withRecord(cmd, func(ctx context.Context, cfg config.Config, db *database.Database, conn *pgx.Conn) (err error) {
				found, err = status.Read(ctx, db, conn, cfg.Spool())
				return err
			})
			if err != nil {
				return err
			}
			return p.print(output, found, func(wide bool) error { return reports.Status(p.out, found, wide) })
		},
	}
	output.add(cmd)
	concerns(cmd, statusSettings...)
	return cmd
}
