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

const long = `Show what happened to an object and to everything that it owns, on one time line: a Deployment, its ReplicaSets and their Pods; a CronJob, its Jobs and their
Pods. story indents owned objects. It finds owners by UID. Events about these objects are on the same time line.

At the end, story summarizes each rollout of a Deployment: what started it, why it was stuck, how it ended. A rollout is done when all replicas use the new
template and are available. If the previous template comes back first, the rollout is undone. If another template comes first, the rollout is replaced.

On a terminal, story only counts repeated Events and the changes that log folds (see "log --help"): -v shows everything. JSON and pipes fold nothing, unless -v,
--only, --ignore or --events is on the command line; --verbose=false folds there too. The field manager that wrote is in brackets, if the version proves it. A ~
before a time means that the time is an estimate. A ? means that clocks of servers contradict it. Gaps and pauses of the record have their own lines.

-o json prints one object per line. Lines of deltas are like those of log -o json, with class (shown, event, lease, endpoints, binding, status, managedFields,
leaderElection, resync), depth and owner (kind, name, uid). An Event also has event (type, reason, message, count, component) and about (kind, name, uid). A
line that has only the member note is a gap, a pause or a damaged row. Lines that have only the member rollout come last: deployment, uid, revision, created,
start, changes, troubles, outcome (done, undone, replaced, deleted or, if it has not ended, ""), end.

Exit code 1 means that something is damaged or missing. story still shows the rest.`

const example = `  # Why did the rollout take so long?
  %[1]s story deployment/web -n shop --since 2h

  # A Job that failed, with its Pods and Events
  %[1]s story job/migrate -n shop

  # The outcome of each rollout
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
	cmd := subject.NewCommand(e, "story", subject.Help{Short: "Show what happened to an object and to everything that it owns", Long: long, Example: example}, c.run)
	flags := cmd.Flags()
	env.InstantVar(flags, &c.since, "since", "", "first instant (default: the beginning)")
	env.InstantVar(flags, &c.until, "until", "now", "last instant, inclusive")
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

// validate rejects invalid flags before the command reads the record.
func (c *command) validate(cmd *cobra.Command, args []string) (err error) {
	if err := subject.Validate(cmd, c.output, args, "name an object, such as deployment/web"); err != nil {
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
	found, err := story.Find(ctx, s.Rec.Record, query)
	if err != nil {
		return err
	}
	if len(found.Objects) == 0 {
		return c.noStory(ctx, s)
	}
	return c.writer(s.Rec, found).write(ctx)
}

// resolved returns the scope in which the instants are resolved. A resource version must be resolved for all objects of the
// story, so the scope is the whole namespace.
func (c *command) resolved(scope history.Scope) history.Scope {
	if c.bounds.Since.RV() != "" || c.bounds.Until.RV() != "" {
		return history.Scope{Namespace: scope.Namespace}
	}
	return scope
}

// noStory returns an error with the reason why there is no story.
func (c *command) noStory(ctx context.Context, s subject.Subject) error {
	r, scope := s.Resource, s.Scope
	for _, err := range s.Rec.Lives(ctx, history.LifeQuery{Scope: scope}) {
		if err != nil {
			return err
		}
		where := ""
		if scope.Namespace != "" {
			where = " -n " + scope.Namespace
		}
		return fmt.Errorf("%s %q did not exist in that time; \"%s log %s/%s%s\" shows when it existed", r, scope.Name, c.env.Command, r, scope.Name, where)
	}
	return r.NeverRecorded(scope)
}
