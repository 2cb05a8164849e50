package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
)

func (p *program) headCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the head of the chain of commits, to keep elsewhere",
		Long: "Print the newest commit of the record as N:HEX: its number, and its digest, which covers all commits before it.\n" +
			"Keep it where nobody can change it who can change the record. The login needs no more than the auditor's role.",
		Example: `  recorder head                         # of the only cluster
  recorder head --cluster-name prod     # of one of several`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			return p.withRecord(cmd, func(ctx context.Context, cfg config.Config, _ *database.Database, conn *pgx.Conn) error {
				head, err := readHead(ctx, conn, cfg.ClusterName)
				if err != nil {
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

// chainHead is the newest commit of a cluster.
type chainHead struct {
	Cluster string `json:"cluster"`
	UID     string `json:"uid"`
	Batch   int64  `json:"batch"`
	Digest  string `json:"digest"` // hexadecimal
	Head    string `json:"head"`   // batch and digest, N:HEX
}

// readHead reads views that an auditor may read.
func readHead(ctx context.Context, conn *pgx.Conn, cluster string) (chainHead, error) {
	rows, err := conn.Query(ctx, `
		SELECT c.name, c.uid, h.batch, h.digest FROM kuberewind.record_heads h JOIN kuberewind.record_clusters c USING (cluster)
		WHERE $1 IN ('', c.name) ORDER BY c.name`, cluster)
	if err != nil {
		return chainHead{}, fmt.Errorf("read the head of the record: %w", err)
	}
	heads, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h chainHead, err error) {
		var digest []byte
		if err := row.Scan(&h.Cluster, &h.UID, &h.Batch, &digest); err != nil {
			return h, err
		}
		head := history.Head{Batch: h.Batch}
		copy(head.Digest[:], digest)
		h.Digest, h.Head = hex.EncodeToString(digest), head.String()
		return h, nil
	})
	switch {
	case err != nil:
		return chainHead{}, fmt.Errorf("read the head of the record: %w", err)
	case len(heads) == 1 && heads[0].Batch > 0:
		return heads[0], nil
	case len(heads) > 1:
		return chainHead{}, usageError{errors.New("the record holds several clusters: name one with --cluster-name")}
	case len(heads) == 0 && cluster != "":
		return chainHead{}, usageError{fmt.Errorf("the record holds no cluster %q", cluster)}
	}
	return chainHead{}, errors.New(`nothing is recorded yet; "recorder run" records`)
}
