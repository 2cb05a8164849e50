package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/past"
)

const long = `Print a kubeconfig that leads to the cluster as it was at an instant, or write it to a file that only you can read (-o).

It needs a running server: start "serve" first. The instant is resolved now: the kubeconfig names one seq, and shows the same however late it is used. Its
context is called after cluster, instant and seq, such as shop@2026-01-31T03:12:00Z_seq:1234.

The kubeconfig holds the token of the server. It is of no use once the server has ended: each start makes a new token. It is never merged into another
kubeconfig, and no file is written over.`

const example = `  # Point this shell to the cluster as it was ten minutes ago
  %[1]s kubeconfig --at 10m -o past.kubeconfig
  export KUBECONFIG=$PWD/past.kubeconfig

  # The cluster before and after a rollout, side by side
  %[1]s kubeconfig --at 2026-01-31T03:10:00Z -o before.kubeconfig
  %[1]s kubeconfig --at 2026-01-31T03:20:00Z -o after.kubeconfig`

// command is one call of kubeconfig.
type command struct {
	env        *env.Env
	at, output string
}

// NewCommand makes the command kubeconfig.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := &cobra.Command{
		Use:     "kubeconfig [--at INSTANT]",
		Short:   "Write a kubeconfig that leads to the cluster as it was",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	past.AtFlag(flags, &c.at)
	flags.StringVarP(&c.output, "output", "o", "", "a new file, which only its owner can read (default: standard output)")
	return cmd
}

func (c *command) run(ctx context.Context) error {
	instant, err := c.env.Instant(c.at)
	if err != nil {
		return err
	}
	rec, err := c.env.Open(ctx)
	if err != nil {
		return err
	}
	text, err := c.text(ctx, rec, instant)
	if err = errors.Join(err, rec.Close()); err != nil {
		return err
	}
	return c.write(text)
}

func (c *command) text(ctx context.Context, rec *env.Record, at history.Instant) ([]byte, error) {
	access, err := past.Running(ctx, c.env, rec)
	if err != nil {
		return nil, err
	}
	if access == nil {
		return nil, fmt.Errorf("no server of this database runs: start %q in another terminal, or use %q, which starts its own",
			c.env.Command+" serve", c.env.Command+" exec")
	}
	instant, err := past.Find(ctx, c.env, rec, at)
	if err != nil {
		return nil, err
	}
	return instant.Kubeconfig(*access)
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
