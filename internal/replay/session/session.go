package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/past"
)

const long = `Make a session, set its clock, play it, or end it. Without a name, list the sessions.

A session is a clock of the past that many clients share. Its clients see the cluster as it was at the time of the clock: kubectl, k9s, informers, controllers
("kubeconfig --session", "exec --session", "shell --session"). While the clock plays, their watches deliver the recorded changes, in the recorded order and
with the recorded time between them.

--at makes the session, or moves its clock. If the clock moves forward, watches deliver all changes in between at once. If it moves backward, open watches end,
and clients list again: k9s and informers do so by themselves, "kubectl get -w" ends, Headlamp needs a reload.

Sessions need a running server: start "serve" first. A session ends with --end, 30 minutes after its last request, or with the server. While a watch is open,
the session does not expire. The session named live always exists. Its clock is the end of the record, and cannot be moved.

If the database has several clusters, --cluster names the cluster of a new session. With --own-credentials, the session is on a server that others run with
--authorization. The URL of --server names the server and the cluster. You need no access to the database.

-o json prints one object: name, cluster, path, owner, time, seq, playing, speed, atEnd, watches, expires, problem, notes. Without a name, it prints {"sessions":
[…]}. expires is missing while a request is open. problem and notes are missing if there are none.`

const example = `  # Last night, half an hour before the alert
  %[1]s session night --at "yesterday 23:30"
  %[1]s exec --session night -- k9s

  # Play it ten times as fast; pause it; play it from another instant
  %[1]s session night --play --speed 10
  %[1]s session night --pause
  %[1]s session night --at 2026-01-31T03:10:00Z --play

  # Print the session; list all sessions; end the session
  %[1]s session night
  %[1]s session
  %[1]s session night --end

  # A session of a server that others run, with your token of the live cluster
  %[1]s session night --at 1h --own-credentials --server \
    https://past.example.com:6443/clusters/0f5c2f6e-8c1c-4d0e-9d26-5f2c1f0f9a11`

// command is one call of session.
type command struct {
	env              *env.Env
	shared           past.Shared
	at, output       string
	play, pause, end bool
	speed            float64
}

// NewCommand makes the command session.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := &cobra.Command{
		Use:     "session [NAME]",
		Short:   "Set, play and seek the clock that clients of the past follow",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	flags := cmd.Flags()
	env.InstantVar(flags, &c.at, "at", "", "instant to set the clock to: a time, 10m ago, now, seq:N or rv:N; a new session needs it")
	flags.BoolVar(&c.play, "play", false, "start the clock")
	flags.BoolVar(&c.pause, "pause", false, "stop the clock at its current time")
	flags.Float64Var(&c.speed, "speed", 1, "seconds of the past per second, from 0.1 to 1000")
	flags.BoolVar(&c.end, "end", false, "end the session")
	c.shared.AddFlags(flags)
	flags.StringVarP(&c.output, "output", "o", output.Text, "text or json")
	return cmd
}

// changes are the flags that change a session.
var changes = []string{"at", "play", "pause", "speed"}

func (c *command) run(cmd *cobra.Command, args []string) error {
	change, err := c.change(cmd.Flags(), args)
	if err = cmp.Or(err, c.shared.Check()); err != nil {
		return env.Mistake(cmd, err)
	}
	if c.output != output.Text && c.output != output.JSON {
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, json", c.output))
	}
	if change != nil && change.At != nil {
		at, err := c.env.Instant(c.at)
		if err != nil {
			return err
		}
		*change.At = at.String()
	}
	sessions, err := c.sessions(cmd.Context())
	if err != nil {
		return err
	}
	defer sessions.Close()
	return c.ask(cmd.Context(), sessions, args, change)
}

// sessions returns a client for the sessions of the flags' server, or of a running server of this database.
func (c *command) sessions(ctx context.Context) (*past.Sessions, error) {
	if c.shared.Selected() {
		return c.shared.Sessions(c.env)
	}
	rec, err := c.env.Open(ctx)
	if err != nil {
		return nil, err
	}
	access, err := past.Running(ctx, c.env, rec)
	if err == nil && access == nil {
		err = past.ErrNoServer(c.env)
	}
	uid := rec.Cluster().UID
	if err = errors.Join(err, rec.Close()); err != nil {
		return nil, err
	}
	return past.NewSessions(access, uid)
}

// change returns the change that the flags request, nil for none.
func (c *command) change(flags *pflag.FlagSet, args []string) (*apiserver.SessionChange, error) {
	changed := slices.ContainsFunc(changes, flags.Changed)
	switch {
	case len(args) == 0 && (changed || c.end):
		return nil, errors.New("name the session, such as: session night")
	case c.play && c.pause:
		return nil, errors.New("--play and --pause exclude each other: use one of them")
	case c.end && changed:
		return nil, errors.New("--end cannot be used with another change")
	case !changed:
		return nil, nil
	}
	change := &apiserver.SessionChange{}
	if flags.Changed("at") {
		change.At = &c.at
	}
	if c.play || c.pause {
		change.Playing = &c.play
	}
	if flags.Changed("speed") {
		change.Speed = &c.speed
	}
	return change, nil
}

func (c *command) ask(ctx context.Context, sessions *past.Sessions, args []string, change *apiserver.SessionChange) error {
	if len(args) == 0 {
		list, err := sessions.List(ctx)
		if err != nil {
			return err
		}
		return c.printList(sessions.Cluster, list)
	}
	state, err := c.state(ctx, sessions, args[0], change)
	if err != nil {
		return err
	}
	return c.print(sessions.Cluster, &state)
}

// state changes or ends a session if the flags request it, and returns the session.
func (c *command) state(ctx context.Context, sessions *past.Sessions, name string, change *apiserver.SessionChange) (apiserver.Session, error) {
	switch {
	case c.end:
		return sessions.End(ctx, name)
	case change == nil:
		return sessions.Get(ctx, name)
	}
	return sessions.Put(ctx, name, change)
}
