package story

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/folding"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
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
	cmd := &cobra.Command{
		Use:     "story (TYPE/NAME | TYPE NAME)",
		Short:   "Show what happened to an object and to all that it owns",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		RunE:    c.run,
	}
	flags := cmd.Flags()
	env.InstantVar(flags, &c.since, "since", "", "instant from which on (default: the beginning)")
	env.InstantVar(flags, &c.until, "until", "now", "instant up to which, inclusive")
	folding.AddFlags(flags)
	flags.StringVarP(&c.output, "output", "o", output.Text, "text or json")
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) error {
	if err := c.validate(cmd, args); err != nil {
		return err
	}
	namespace, err := c.env.Namespace(false)
	if err != nil {
		return err
	}
	rec, err := c.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	return errors.Join(c.answer(cmd.Context(), rec, args, namespace), rec.Close())
}

// validate refuses what cannot be meant before anything is read.
func (c *command) validate(cmd *cobra.Command, args []string) (err error) {
	if !slices.Contains([]string{output.Text, output.JSON}, c.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q is none of text, json", c.output))
	}
	if len(args) == 0 {
		return env.Mistake(cmd, errors.New("say whose story to tell, such as deployment/web"))
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

func (c *command) answer(ctx context.Context, rec *env.Record, args []string, namespace string) error {
	at, _, err := c.env.TimeOf(ctx, rec, c.bounds.Until)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, at, c.env.Note)
	if err != nil {
		return err
	}
	targets, err := catalog.Targets(args)
	if err != nil {
		return err
	}
	r, scope, err := resource.One(targets, namespace)
	if err != nil {
		return err
	}
	c.env.Note(r.Confined(namespace))
	query := history.Query{Scope: scope}
	if err := c.bounds.Resolve(ctx, rec.Record, c.env.Note, c.resolved(scope), &query); err != nil {
		return err
	}
	s, err := story.Find(ctx, rec.Record, query)
	if err != nil {
		return err
	}
	if len(s.Objects) == 0 {
		return c.nobody(ctx, rec, r, scope)
	}
	return c.writer(rec, s).write(ctx)
}

// resolved is of what the instants are: a resource version is to be one of all that belongs to the story.
func (c *command) resolved(scope history.Scope) history.Scope {
	if c.bounds.Since.RV() != "" || c.bounds.Until.RV() != "" {
		return history.Scope{Namespace: scope.Namespace}
	}
	return scope
}

// nobody says why there is no story.
func (c *command) nobody(ctx context.Context, rec *env.Record, r *resource.Resource, scope history.Scope) error {
	for _, err := range rec.Lives(ctx, history.LifeQuery{Scope: scope}) {
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
