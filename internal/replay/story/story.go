package story

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/folding"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/subject"
	"github.com/kuberewind/kuberewind/story"
)

const long = `Show what happened to an object and to all that it owns, on one time line: a Deployment, its ReplicaSets and their Pods, a CronJob, its Jobs and their
Pods. What is owned is indented. The Events about any of them stand where they happened. Owners are told by UID.

At the end, each rollout of a Deployment is summed up: what started it, why it was stuck, how it ended. It is done when all replicas are of the new
template and available. It is undone if the template from before it came back first, and replaced if another one came.

On a terminal the text counts what says little, as log does, and the repetitions of Events: -v shows everything. JSON and pipes leave out nothing, unless -v, --only,
--ignore or --events stands on the command line; --verbose=false folds there too.
In brackets stands the field manager that wrote, if the version proves it. A ~ before a time says that it is an estimate, a ? that clocks of servers contradict it. Gaps and pauses
of the record are lines of their own.

-o json prints one object a line. Lines of deltas are those of log -o json, with class (shown, event, lease, endpoints, binding, status, managedFields,
leaderElection, resync), depth, owner (kind, name, uid), and of an Event event (type, reason, message, count, component) and about (kind, name, uid). Lines with
the one member note are gaps, pauses or damaged rows. Lines with the one member rollout come last: deployment, uid, revision, created, start, changes, troubles, outcome
(done, undone, replaced, deleted or, if it has not ended, ""), end.

Exit code 1 says that something is damaged or missing: the rest is shown all the same.`

const example = `  # Why did the rollout take so long?
  %[1]s story deployment/web -n shop --since 2h

  # A Job that failed, with its Pods and Events
  %[1]s story job/migrate -n shop

  # How each rollout of the record ended
  %[1]s story deployment/web -n shop -o json | jq -c '.rollout // empty'`

// command is one call of story.
type command struct {
	env          *env.Env
	since, until string
	output       string
	folding      folding.Rules
	bounds       entries.Bounds
}

// NewCommand makes the command story.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := subject.NewCommand(e, "story", subject.Help{Short: "Show what happened to an object and to all that it owns", Long: long, Example: example}, c.run)
	flags := cmd.Flags()
	env.InstantVar(flags, &c.since, "since", "", "instant from which on (default: the beginning)")
	env.InstantVar(flags, &c.until, "until", "now", "instant up to which, inclusive")
	folding.AddFlags(flags)
	subject.OutputVar(cmd, &c.output)
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) error {
	if err := c.validate(cmd, args); err != nil {
		return err
	}
	return subject.Answer(cmd.Context(), c.env, args, "--until", c.bounds.Until, func(s subject.Subject) error { return c.answer(cmd.Context(), s) })
}

// validate refuses what cannot be meant before anything is read.
func (c *command) validate(cmd *cobra.Command, args []string) (err error) {
	if err := subject.Validate(cmd, c.output, args, "say whose story to tell, such as deployment/web"); err != nil {
		return err
	}
	if c.folding, err = folding.Of(c.env, cmd, c.person()); err != nil {
		return err
	}
	c.folding.Events = true
	if c.since != "" {
		c.bounds.HasSince = true
		if c.bounds.Since, err = c.env.Instant(c.since); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
	}
	if c.bounds.Until, err = c.env.Instant(c.until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	return nil
}

// person reports whether a person reads the story at a terminal.
func (c *command) person() bool { return c.output == output.Text && c.env.Terminal() }

func (c *command) answer(ctx context.Context, s subject.Subject) error {
	query := history.Query{Scope: s.Scope}
	if err := c.bounds.Resolve(ctx, s.Rec.Record, c.env.Note, c.resolved(s.Scope), &query); err != nil {
		return err
	}
	told, err := story.Find(ctx, s.Rec.Record, query)
	if err != nil {
		return err
	}
	if len(told.Objects) == 0 {
		return c.nobody(ctx, s)
	}
	return c.writer(s.Rec, told).write(ctx)
}

// resolved is of what the instants are: a resource version is to be one of all that belongs to the story.
func (c *command) resolved(scope history.Scope) history.Scope {
	if c.bounds.Since.RV() != "" || c.bounds.Until.RV() != "" {
		return history.Scope{Namespace: scope.Namespace}
	}
	return scope
}

// nobody says why there is no story.
func (c *command) nobody(ctx context.Context, s subject.Subject) error {
	r, scope := s.Resource, s.Scope
	for _, err := range s.Rec.Lives(ctx, history.LifeQuery{Scope: scope}) {
		if err != nil {
			return err
		}
		where := ""
		if scope.Namespace != "" {
			where = " -n " + scope.Namespace
		}
		return fmt.Errorf("%s %q did not live in that time; \"%s log %s/%s%s\" shows when it did", r, scope.Name, c.env.Command, r, scope.Name, where)
	}
	return r.NeverRecorded(scope)
}
