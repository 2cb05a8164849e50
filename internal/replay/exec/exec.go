package exec

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/inside"
	"github.com/kuberewind/kuberewind/internal/replay/past"
)

const long = `Run a program whose Kubernetes clients work on the cluster as it was at an instant: kubectl, k9s, helm, a script, a controller.

KUBECONFIG and KUBECACHEDIR name a folder of the program's own, which is removed when it has ended. No other kubeconfig is touched. The cluster of the past
can be read, not written.

If a server of this database runs (serve), it answers. Else one runs as long as the program.

The exit code is the program's; if a signal ended it, 128 and the signal's number. 126 says that the program could not be run, 127 that there is none.`

const example = `  # k9s on the cluster as it was ten minutes ago
  %[1]s exec --at 10m -- k9s

  # kubectl when the alert fired, in a namespace
  %[1]s exec --at 2026-01-31T03:12:00Z -n shop -- kubectl describe pod web-0

  # A script that calls kubectl many times, always at the same instant
  %[1]s exec --at yesterday -- ./count-images.sh`

// NewCommand makes the command exec.
func NewCommand(e *env.Env) *cobra.Command {
	at := ""
	cmd := &cobra.Command{
		Use:     "exec [--at INSTANT] -- PROGRAM [ARGUMENT…]",
		Short:   "Run a program, such as k9s, on the cluster as it was",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return env.Mistake(cmd, errors.New("say which program to run, such as -- k9s"))
			}
			return inside.Run(cmd.Context(), e, at, args, func(string) {})
		},
	}
	past.AtFlag(cmd.Flags(), &at)
	cmd.Flags().SetInterspersed(false) // Flags behind the program are the program's.
	return cmd
}
