package blame

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

const long = `Show an object as YAML, as it was at an instant, and before each line the version that last set it: its seq, its time, and the field manager that wrote it,
if the version proves it.

A line keeps its version while its value stays the same. So it does when it moves within its list, and when something around it is replaced. A ~ before a time
says that it is an estimate. Instead of a manager, "before the record" says that the line was there when the record of the object began, and "in a gap" that the
record missed versions: one of them may have set the line. "-" is an unknown writer. A ? says that clocks of servers contradict the time.

On a terminal, lines of one version name it once.

-o json prints one object a line: text, pointer (RFC 6901), seq, resourceVersion, observedAt, occurredAt, estimated, notBefore, notAfter, contradictory, type, source,
manager, subresource, earlier (before the record) and latest (in a gap).

Exit code 1 says that something is damaged or missing: the rest is shown all the same.`

const example = `  # Who set which line of this Deployment?
  %[1]s blame deployment/web -n shop

  # Who had set the image when the alert fired?
  %[1]s blame deployment/web -n shop --at 03:12 | grep image:`

// command is one call of blame.
type command struct {
	env           *env.Env
	at            string
	output        string
	managedFields bool
	bounds        entries.Bounds
}

// NewCommand makes the command blame.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := &cobra.Command{
		Use:     "blame (TYPE/NAME | TYPE NAME)",
		Short:   "Show which version set each line of an object",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		RunE:    c.run,
	}
	flags := cmd.Flags()
	env.InstantVar(flags, &c.at, "at", "now", "instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
	flags.BoolVar(&c.managedFields, "show-managed-fields", false, "show metadata.managedFields too")
	flags.StringVarP(&c.output, "output", "o", output.Text, "text or json")
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) (err error) {
	if !slices.Contains([]string{output.Text, output.JSON}, c.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q is none of text, json", c.output))
	}
	if len(args) == 0 {
		return env.Mistake(cmd, errors.New("say which object, such as deployment/web"))
	}
	if c.bounds.Until, err = c.env.Instant(c.at); err != nil {
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

func (c *command) answer(ctx context.Context, rec *env.Record, args []string, namespace string) error {
	at, _, err := c.env.TimeOf(ctx, rec, c.bounds.Until)
	if err != nil {
		return err
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
	if err := c.bounds.Resolve(ctx, rec.Record, c.env.Note, scope, &history.Query{}); err != nil {
		return fmt.Errorf("--at: %w", errors.Unwrap(err)) // it says --until
	}
	point := c.bounds.To
	c.env.Notes(point.Notes)
	alive, err := living(ctx, rec, point, scope)
	if err != nil {
		return err
	}
	if alive == 0 {
		end, err := resource.EndOf(ctx, rec.Record, scope, point)
		if err != nil {
			return err
		}
		return r.Gone(c.env.Command, scope, end)
	}
	return c.life(ctx, rec, alive)
}

// living gives the object of a name that was alive at a point, 0 if there was none.
func living(ctx context.Context, rec *env.Record, p history.Point, scope history.Scope) (id int64, err error) {
	_, err = rec.Rebuild(ctx, p, scope, history.RebuildOptions{}, func(o history.Object) error {
		id = o.ObjectID
		return nil
	})
	var damaged *history.DamagedError
	if errors.As(err, &damaged) {
		return damaged.ObjectID, nil // its lines are those of the last version that is not
	}
	return id, err
}

// life folds the versions of one life, and prints the lines of the last.
func (c *command) life(ctx context.Context, rec *env.Record, id int64) error {
	progress := c.env.Progress("folding the versions of the object")
	defer progress.End()
	var f blame.Fold
	var damaged []error
	n := int64(0)
	for v, err := range rec.Versions(ctx, history.Query{ObjectID: id, ToSeq: max(c.bounds.To.Seq, c.bounds.To.Until)}) {
		if err == nil {
			err = c.add(ctx, &f, &v)
		} else if r, ok := entries.Broken(err); ok {
			c.env.Note(r.Text)
			damaged, err = append(damaged, err), nil
		}
		if err != nil {
			return err
		}
		n++
		progress.Tell(history.Progress{Stage: "versions", Done: n})
	}
	lines, err := f.Lines(c.managedFields)
	if err != nil {
		return errors.Join(err, entries.Damage(damaged))
	}
	progress.End()
	spans, err := c.spans(ctx, lines)
	if err != nil {
		return errors.Join(err, entries.Damage(damaged))
	}
	return errors.Join(c.print(lines, spans), entries.Damage(damaged))
}

// spans says when each version happened that set a line.
func (c *command) spans(ctx context.Context, lines []blame.Line) (spans, error) {
	all := spans{}
	for _, l := range lines {
		o := l.Origin
		if _, known := all[o]; known {
			continue
		}
		span, err := c.bounds.When(ctx, &history.Delta{Seq: o.Seq, ObservedAt: o.ObservedAt, OccurredAt: o.OccurredAt})
		if err != nil {
			return nil, err
		}
		all[o] = span
	}
	return all, nil
}

// add folds a version, if it belongs to the instant.
func (c *command) add(ctx context.Context, f *blame.Fold, v *history.Version) error {
	held, _, err := c.bounds.Holds(ctx, &v.Delta, false)
	if err != nil || !held {
		return err
	}
	return f.Add(v)
}
