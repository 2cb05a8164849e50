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

With --session, the program follows the clock of a session: replayed, it sees the cluster change ("session" makes one). With --live it is at the end of
the record, and sees the cluster change as it is recorded.

KUBECONFIG and KUBECACHEDIR name a folder of the program's own, which is removed when it has ended. No other kubeconfig is touched. The cluster of the past
can be read, not written.

If a server of this database runs (serve), it answers. Else one runs as long as the program. A session needs one that runs.

--intentions writes what the program wanted to change: one JSON line for each write, which is refused all the same. A server that runs already has the
flag itself.

The exit code is the program's; if a signal ended it, 128 and the signal's number. 126 says that the program could not be run, 127 that there is none.`

const example = `  # k9s on the cluster as it was ten minutes ago
  %[1]s exec --at 10m -- k9s

  # kubectl when the alert fired, in a namespace
  %[1]s exec --at 2026-01-31T03:12:00Z -n shop -- kubectl describe pod web-0

  # k9s in a session, which another terminal plays: %[1]s session night --play --speed 10
  %[1]s exec --session night -- k9s

  # k9s with the ages of then: it counts them itself
  %[1]s exec --at 10m --shift-times -- k9s

  # A controller, and what it would have changed last night
  %[1]s exec --at "yesterday 23:30" --intentions intentions.jsonl -- ./controller --leader-elect=false

  # A script that calls kubectl many times, always at the same instant
  %[1]s exec --at yesterday -- ./count-images.sh`

// NewCommand makes the command exec.
func NewCommand(e *env.Env) *cobra.Command {
	target := &past.Target{}
	var intentions past.Intentions
	cmd := &cobra.Command{
		Use:     "exec [--at INSTANT | --session NAME | --live] -- PROGRAM [ARGUMENT…]",
		Short:   "Run a program, such as k9s, on the cluster as it was",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return env.Mistake(cmd, errors.New("say which program to run, such as -- k9s"))
			}
			aim, err := target.Aim(cmd, e)
			if err != nil {
				return err
			}
			return inside.Run(cmd.Context(), e, aim, inside.Program{Command: args, Intentions: intentions})
		},
	}
	target.AddFlags(cmd)
	intentions.AddFlag(cmd.Flags())
	cmd.Flags().SetInterspersed(false) // Flags behind the program are the program's.
	return cmd
}
