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

With --session, the program follows the clock of a session. While the session plays, the program sees the cluster change. "session" makes a session.
With --live, the program sees the end of the record, and the cluster changes as the recorder records it.

KUBECONFIG and KUBECACHEDIR name a folder for this program. exec removes the folder when the program has ended. exec changes no other kubeconfig. Clients
can read the cluster of the past, and cannot write to it.

If a server of this database already runs ("serve"), it answers. If not, exec starts one, which runs as long as the program. A session needs a server that
already runs.

--intentions writes the changes that the program tried to make: one JSON line for each write. The server still refuses the write. If a server already
runs, give the flag to that server.

The exit code is the program's. If a signal ended the program, the exit code is 128 plus the signal's number. 126 means that the program could not be run,
127 that it was not found.`

const example = `  # k9s on the cluster as it was ten minutes ago
  %[1]s exec --at 10m -- k9s

  # kubectl when the alert fired, in a namespace
  %[1]s exec --at 2026-01-31T03:12:00Z -n shop -- kubectl describe pod web-0

  # k9s in a session, which another terminal plays:
  # %[1]s session night --play --speed 10
  %[1]s exec --session night -- k9s

  # k9s computes ages itself: shift all times, so that it shows the ages of then
  %[1]s exec --at 10m --shift-times -- k9s

  # A controller, and the changes that it would have made last night
  %[1]s exec --at "yesterday 23:30" --intentions intentions.jsonl -- \
    ./controller --leader-elect=false

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
				return env.Mistake(cmd, errors.New("name the program to run, such as -- k9s"))
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
	cmd.Flags().SetInterspersed(false) // flags after the program's name belong to the program
	return cmd
}
