package shell

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/inside"
	"github.com/kuberewind/kuberewind/internal/replay/past"
)

const long = `Run a shell in which kubectl and every other Kubernetes client work on the cluster as it was at an instant. The shell is $SHELL, or /bin/sh if SHELL is not set.

With --session, clients in the shell follow the clock of a session. "session" makes a session. With --live, they see the end of the record.

KUBECONFIG and KUBECACHEDIR name a folder for this shell. The command removes the folder when the shell has ended. It changes no other kubeconfig. Clients can
read the cluster of the past, and cannot write to it. If the startup files of your shell set KUBECONFIG, they win: "kubectl config current-context" prints the
context that kubectl uses.

If a server of this database already runs ("serve"), it answers. If not, the command starts one, which runs as long as the shell. A session needs a server
that already runs. The exit code is the shell's.

--intentions writes the changes that clients in the shell tried to make: one JSON line for each write. The server still refuses the write. If a server already
runs, give the flag to that server.`

const example = `  # Look around in the cluster of last night
  %[1]s shell --at "yesterday 23:30"

  # The same in a namespace
  %[1]s shell --at 2026-01-31T03:12:00Z -n shop

  # At the clock of a session
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
				e.Note(fmt.Sprintf("kubectl in this shell uses context %s; type exit to end the shell. \"kubectl config current-context\" must print the same context", context))
			}})
		},
	}
	target.AddFlags(cmd)
	intentions.AddFlag(cmd.Flags())
	return cmd
}
