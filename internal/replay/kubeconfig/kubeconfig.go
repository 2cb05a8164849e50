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

const long = `Print a kubeconfig that leads to the cluster as it was at an instant, or write it to a file that only you can read (-o).

It needs a running server: start "serve" first. The instant is resolved now: the kubeconfig names one seq, and shows the same however late it is used. Its
context is called after cluster, instant and seq, such as shop@2026-01-31T03:12:00Z_seq:1234.

With --session, it leads to where a session is: clients follow its clock, which "session" sets, plays and seeks. With --live, it leads to the end of the
record, as it grows. The contexts are called shop@session:night and shop@live.

With --own-credentials, it leads to a server that others run with --authorization, by the URL of --server. It takes over the user of your current
context, and the server finds the instant: you need no access to the database.

Else the kubeconfig holds the token of the server. It is of no use once the server has ended: each start makes a new token. It is never merged into another
kubeconfig, and no file is written over.`

const example = `  # Point this shell to the cluster as it was ten minutes ago
  %[1]s kubeconfig --at 10m -o past.kubeconfig
  export KUBECONFIG=$PWD/past.kubeconfig

  # A session, which can be played and sought
  %[1]s session night --at "yesterday 23:30"
  %[1]s kubeconfig --session night -o night.kubeconfig

  # The cluster before and after a rollout, side by side
  %[1]s kubeconfig --at 2026-01-31T03:10:00Z -o before.kubeconfig
  %[1]s kubeconfig --at 2026-01-31T03:20:00Z -o after.kubeconfig

  # A server that others run, with the token that you have in the live cluster
  %[1]s kubeconfig --at 10m --own-credentials --server https://past.example.com:6443/clusters/0f5c2f6e-8c1c-4d0e-9d26-5f2c1f0f9a11 -o past.kubeconfig`

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
		Short:   "Write a kubeconfig that leads to the cluster as it was",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	c.target.AddFlags(cmd)
	c.shared.AddFlags(flags)
	flags.StringVarP(&c.output, "output", "o", "", "a new file, which only its owner can read (default: standard output)")
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
	if c.shared.Meant() {
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
		return nil, fmt.Errorf("no server of this database runs: start %q in another terminal, or use %q, which starts its own",
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
		return fmt.Errorf("%s is there already: remove it, or name another file; a kubeconfig is not merged into another", c.output)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
