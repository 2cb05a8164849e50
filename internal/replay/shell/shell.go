package shell

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/inside"
	"github.com/kuberewind/kuberewind/internal/replay/past"
)

const long = `Run a shell in which kubectl and every other Kubernetes client work on the cluster as it was at an instant. It is the shell of SHELL, else /bin/sh.

With --session, the shell follows the clock of a session ("session" makes one). With --live it is at the end of the record.

KUBECONFIG and KUBECACHEDIR name a folder of the shell's own, which is removed when it has ended. No other kubeconfig is touched. The cluster of the past
can be read, not written. If the files that your shell reads at its start set KUBECONFIG, they win: "kubectl config current-context" says where you are.

If a server of this database runs (serve), it answers. Else one runs as long as the shell. A session needs one that runs. The exit code is the shell's.

--intentions writes what clients in the shell wanted to change: one JSON line for each write, which is refused all the same. A server that runs already has
the flag itself.`

const example = `  # Look around in the cluster of last night
  %[1]s shell --at "yesterday 23:30"

  # The same in a namespace
  %[1]s shell --at 2026-01-31T03:12:00Z -n shop

  # Where a session is
  %[1]s shell --session night`

// NewCommand makes the command shell.
func NewCommand(e *env.Env) *cobra.Command {
	target := &past.Target{}
	var intentions past.Intentions
	cmd := &cobra.Command{
		Use:     "shell [--at INSTANT | --session NAME | --live]",
		Short:   "Run a shell in which kubectl works on the cluster as it was",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			aim, err := target.Aim(cmd, e)
			if err != nil {
				return err
			}
			program := cmp.Or(e.Variable("SHELL"), "/bin/sh")
			return inside.Run(cmd.Context(), e, aim, inside.Program{Command: []string{program}, Intentions: intentions, Welcome: func(context string) {
				e.Note(fmt.Sprintf("kubectl is at %s here; exit leads back. \"kubectl config current-context\" must say the same", context))
			}})
		},
	}
	target.AddFlags(cmd)
	intentions.AddFlag(cmd.Flags())
	return cmd
}
