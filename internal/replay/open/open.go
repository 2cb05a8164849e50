package open

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/replay/subject"
)

const long = `Open the page of the record in a browser. It shows what changed, and the cluster at the instant under the cursor.

The page first shows the object TYPE/NAME at the instant --at. Without them, it shows what is wrong now and what changed in the last hour.

If a server of this database runs ("serve"), open uses it. If not, open starts a server, which runs until Ctrl-C.

Without a display, open prints the link, and the ssh -L line for your own machine. The link holds a code that opens the page once, within 60 seconds. The page
then gets a token, which is valid until the server ends.

-o json prints url, page, ssh, expires, cluster, and at if there is an instant. It opens no browser. Use it for a browser that cannot read your runtime
directory, such as a browser installed by snap.`

const example = `  # The page
  %[1]s open

  # A Deployment, ten minutes ago
  %[1]s open deployment/checkout -n shop --at 10m

  # Only the link
  %[1]s open -o json | jq -r .url`

// command is one call of open.
type command struct {
	env        *env.Env
	at, output string
}

// NewCommand makes the command open.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := &cobra.Command{
		Use:     "open [TYPE/NAME | TYPE NAME]",
		Short:   "Open the page of the record in a browser",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.MaximumNArgs(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	past.AtFlag(cmd.Flags(), &c.at)
	subject.OutputVar(cmd, &c.output)
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) error {
	if !slices.Contains([]string{output.Text, output.JSON}, c.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, json", c.output))
	}
	at, err := c.env.Instant(c.at)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if len(args) > 0 {
		return subject.Answer(ctx, c.env, args, "--at", at, func(s subject.Subject) error { return c.object(ctx, s, at) })
	}
	rec, err := c.env.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(c.show(ctx, rec, at, past.Focus{}), rec.Close())
}

// object opens the page at an object, if the record ever held it.
func (c *command) object(ctx context.Context, s subject.Subject, at history.Instant) error {
	known := false
	for _, err := range s.Rec.Lives(ctx, history.LifeQuery{Scope: s.Scope}) {
		if err != nil {
			return err
		}
		known = true
		break
	}
	if !known {
		return s.Resource.NeverRecorded(s.Scope)
	}
	return c.show(ctx, s.Rec, at, past.Focus{Resource: s.Resource.String(), Namespace: s.Scope.Namespace, Name: s.Scope.Name})
}

// show opens the page of a running server, or of a server that it starts.
func (c *command) show(ctx context.Context, rec *env.Record, at history.Instant, focus past.Focus) error {
	focus.Cluster = rec.Cluster().UID
	if !at.IsNow() {
		point, err := rec.Resolve(ctx, at, history.Scope{})
		if err != nil {
			return fmt.Errorf("--at: %w", err)
		}
		c.env.Notes(point.Notes)
		c.env.Note(past.Inexact("the page shows", point))
		focus.At = history.AtSeq(point.Seq).String()
	}
	access, err := past.Running(ctx, c.env, rec)
	if err != nil {
		return err
	}
	if access == nil {
		return c.own(ctx, rec, focus)
	}
	return c.openLink(ctx, access, focus)
}
