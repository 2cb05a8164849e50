package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/preflight"
	"github.com/kuberewind/kuberewind/internal/reports"
)

func (p *program) checkCommand() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a recorder could record: cluster, permissions, database, key",
		Long: "Check whether a recorder could record. The cluster must be reachable and readable, the database writable, and the redaction\n" +
			"key the right one. Nothing is changed. The exit code is 1 if a check fails.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := p.loadQuietly(cmd)
			if err != nil {
				return err
			}
			if err := output.validate(); err != nil {
				return err
			}
			report := preflight.Check(cmd.Context(), cfg, log)
			if err := p.print(output, report, func(wide bool) error { return reports.Preflight(p.out, report, wide) }); err != nil {
				return err
			}
			if !report.OK {
				return errReport
			}
			return nil
		},
	}
	output.add(cmd)
	return cmd
}

var errReport = errors.New("at least one check failed")
