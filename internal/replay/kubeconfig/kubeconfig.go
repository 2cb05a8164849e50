package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/past"
)

const long = `Print a kubeconfig for the cluster as it was at an instant, or write it to a file that only you can read (-o).

The command needs a running server: start "serve" first. It resolves the instant now. The kubeconfig names one seq, so it always shows the same state. The
name of its context has the cluster, the instant and the seq, such as shop@2026-01-31T03:12:00Z_seq:1234.

With --session, clients follow the clock of a session. "session" sets, plays and seeks that clock. With --live, clients see the end of the record, as it
grows. The contexts are named shop@session:night and shop@live.

With --own-credentials, the kubeconfig is for a server that others run with --authorization, at the URL of --server. It uses the user of your current
context. The server resolves the instant, so you need no access to the database.

Without --own-credentials, the kubeconfig holds the token of the server. Each start of the server makes a new token, so the kubeconfig works only until the
server ends. The command never merges it into another kubeconfig, and never overwrites a file.`

const example = `  # Use this shell on the cluster as it was ten minutes ago
  %[1]s kubeconfig --at 10m -o past.kubeconfig
  export KUBECONFIG=$PWD/past.kubeconfig

  # A session, which you can play and seek
  %[1]s session night --at "yesterday 23:30"
  %[1]s kubeconfig --session night -o night.kubeconfig

  # The cluster before and after a rollout, side by side
  %[1]s kubeconfig --at 2026-01-31T03:10:00Z -o before.kubeconfig
  %[1]s kubeconfig --at 2026-01-31T03:20:00Z -o after.kubeconfig

  # A server that others run, with the token that you have in the live cluster
  %[1]s kubeconfig --at 10m -o past.kubeconfig --own-credentials --server \
    https://past.example.com:6443/clusters/0f5c2f6e-8c1c-4d0e-9d26-5f2c1f0f9a11`

// command is one call of kubeconfig.
type command struct {
	env    *env.Env
	target past.Target
	shared past.Shared
	output string
}

// NewCommand makes the command kubeconfig.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := &cobra.Command{
		Use:     "kubeconfig [--at INSTANT | --session NAME | --live]",
		Short:   "Write a kubeconfig for the cluster as it was",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.target.AddFlags(cmd)
	c.shared.AddFlags(flags)
	flags.StringVarP(&c.output, "output", "o", "", "a new file that only its owner can read (default: standard output)")
	return cmd
}

func (c *command) run(cmd *cobra.Command) error {
	if err := c.shared.Check(); err != nil {
		return err
	}
	aim, err := c.target.Aim(cmd, c.env)
	if err != nil {
		return err
	}
	if c.shared.Selected() {
		text, err := c.shared.Kubeconfig(cmd.Context(), c.env, aim)
		if err != nil {
			return err
		}
		return c.write(text)
	}
	rec, err := c.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	text, err := c.text(cmd.Context(), rec, aim)
	if err = errors.Join(err, rec.Close()); err != nil {
		return err
	}
	return c.write(text)
}

func (c *command) text(ctx context.Context, rec *env.Record, aim *past.Aim) ([]byte, error) {
	access, err := past.Running(ctx, c.env, rec)
	if err != nil {
		return nil, err
	}
	if access == nil {
		return nil, fmt.Errorf("no server of this database runs: start %q in another terminal, or use %q, which starts its own server",
			c.env.Command+" serve", c.env.Command+" exec")
	}
	place, err := aim.Find(ctx, c.env, rec, access)
	if err != nil {
		return nil, err
	}
	return place.Kubeconfig(*access)
}

func (c *command) write(text []byte) error {
	if c.output == "" || c.output == "-" {
		_, err := c.env.IOStreams.Out.Write(text)
		return err
	}
	file, err := os.OpenFile(c.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: remove it, or name another file; the command does not merge kubeconfigs", c.output)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
