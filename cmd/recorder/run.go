package main

import (
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/recorder"
)

func (p *program) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Follow the cluster and record it (the default)",
		Long: "Follow the cluster and record it, until SIGTERM or SIGINT. Then the recorder writes the queued deltas, within --drain-timeout.\n" +
			"It reads the cluster with get, list and watch. If several recorders share a database, one records and the others stand by.",
		Args: noArguments,
		RunE: p.run,
	}
}

func (p *program) run(cmd *cobra.Command, _ []string) error {
	cfg, log, err := p.load(cmd)
	if err != nil {
		return err
	}
	return recorder.Run(cmd.Context(), cfg, log)
}
