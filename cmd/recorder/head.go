package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/status"
)

func (p *program) headCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the head of the chain of commits, to keep elsewhere",
		Long: "Print the newest commit of the record as N:HEX: its number, and its digest, which covers all commits before it.\n" +
			"Store it in a place that users with write access to the record cannot change. The auditor's role is enough for this command.",
		Example: `  recorder head                         # of the only cluster
  recorder head --cluster-name prod     # of one of several`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			return p.withRecord(cmd, func(ctx context.Context, cfg config.Config, _ *database.Database, conn *pgx.Conn) error {
				head, err := status.ReadHead(ctx, conn, cfg.ClusterName)
				var unclear *status.ClusterError
				switch {
				case errors.As(err, &unclear):
					return usageError{err}
				case err != nil:
					return err
				}
				return p.print(output, head, func(bool) error {
					_, err := fmt.Fprintln(p.out, head.Head)
					return err
				})
			})
		},
	}
	output.add(cmd)
	concerns(cmd, append(databaseSettings, "cluster-name")...)
	return cmd
}
