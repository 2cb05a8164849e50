package main

import (
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/recorder"
)

func (p *program) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Follow the cluster and record it (the default)",
		Long: "Follow the cluster and record it, until SIGTERM or SIGINT: then what is queued is written, within --drain-timeout.\n" +
			"The cluster is only read: get, list and watch. Of several recorders with one database, one records and the others stand by.",
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
