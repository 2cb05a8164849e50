package blame

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/subject"
)

const long = `Show an object as YAML, as it was at an instant. Before each line, blame prints the version that last set the line: its seq, its time, and its field manager,
if the version proves who wrote it.

A line keeps its version while its value stays the same. It also keeps its version if it moves within its list, or if a writer replaces the fields around it.
A ~ before a time means that the time is an estimate. A ? means that clocks of servers contradict the time. The column of the manager can also have:
  before the record   the line existed before the recording of the object began
  in a gap            versions are missing; one of them may have set the line
  -                   the writer is unknown

On a terminal, blame prints a version once for consecutive lines.

-o json prints one object per line: text, pointer (RFC 6901), seq, resourceVersion, observedAt, occurredAt, estimated, notBefore, notAfter, contradictory,
type, source, manager, subresource, earlier (before the record) and latest (in a gap).

Exit code 1 means that something is damaged or missing. blame still shows the rest.`

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
	cmd := subject.NewCommand(e, "blame", subject.Help{Short: "Show which version set each line of an object", Long: long, Example: example}, c.run)
	flags := cmd.Flags()
	env.InstantVar(flags, &c.at, "at", "now", "instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
	flags.BoolVar(&c.managedFields, "show-managed-fields", false, "show metadata.managedFields too")
	subject.OutputVar(cmd, &c.output)
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) (err error) {
	if err := subject.Validate(cmd, c.output, args, "name an object, such as deployment/web"); err != nil {
		return err
	}
	if c.bounds.Until, err = c.env.Instant(c.at); err != nil {
		return err
	}
	return subject.Answer(cmd.Context(), c.env, args, "--at", c.bounds.Until, func(s subject.Subject) error { return c.answer(cmd.Context(), s) })
}

func (c *command) answer(ctx context.Context, s subject.Subject) error {
	if err := c.bounds.Resolve(ctx, s.Rec.Record, c.env.Note, s.Scope, &history.Query{}); err != nil {
		return fmt.Errorf("--at: %w", errors.Unwrap(err)) // Resolve names the flag --until
	}
	point := c.bounds.To
	c.env.Notes(point.Notes)
	alive, err := living(ctx, s.Rec, point, s.Scope)
	if err != nil {
		return err
	}
	if alive == 0 {
		end, err := resource.EndOf(ctx, s.Rec.Record, s.Scope, point)
		if err != nil {
			return err
		}
		return s.Resource.Gone(c.env.Command, s.Scope, end)
	}
	return c.life(ctx, s.Rec, alive)
}

// living returns the ID of the object of a name that was alive at a point, 0 if there was none.
func living(ctx context.Context, rec *env.Record, p history.Point, scope history.Scope) (id int64, err error) {
	_, err = rec.Rebuild(ctx, p, scope, history.RebuildOptions{}, func(o history.Object) error {
		id = o.ObjectID
		return nil
	})
	var damaged *history.DamagedError
	if errors.As(err, &damaged) {
		return damaged.ObjectID, nil // blame shows the lines of its last undamaged version
	}
	return id, err
}

// life folds the versions of one life, and prints the lines of its last version.
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
		progress.Update(history.Progress{Stage: "versions", Done: n})
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

// spans returns the time range of each version that set a line.
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

// add folds a version, if it happened by the instant.
func (c *command) add(ctx context.Context, f *blame.Fold, v *history.Version) error {
	held, _, err := c.bounds.Holds(ctx, &v.Delta, false)
	if err != nil || !held {
		return err
	}
	return f.Add(v)
}
