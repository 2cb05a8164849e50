package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/compare"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
)

const diffLong = `Show which objects were added, removed and changed between two instants, of the named types or of all types.

diff compares objects by UID. If an object was deleted and created again under the same name, diff shows one removed and one added object, marked as
recreated. diff does not show an object that was created and deleted between the two instants; see log. If only bookkeeping fields differ
(metadata.managedFields, resourceVersion and generation, status.observedGeneration), diff only counts the object. --all-fields shows it.

On a terminal, the text shows the changes of people and deployers. Its last line counts the rest, like log does: see "log --help". -v, --only, --ignore,
--events, --path, -l and --index select what diff shows. If a flag on the command line hides a change, the change is no difference.

If --from is before the record began, diff uses the first instant of the record, and prints a note.

-o json prints one object per line: change (added, removed, changed), recreated, group, version, resource, kind, namespace, name, uid, from and to
(seq and resourceVersion), and changes as in log -o json. -o name prints +, - or ~, the resource, and the object name.

Exit codes: 0 no difference, 1 differences, 2 failure.`

const diffExample = `  # What is different since yesterday
  %[1]s diff --from yesterday -n shop

  # Drift of workloads between two dates, as a diff of YAML
  %[1]s diff --from 2026-01-01 --to 2026-01-31 deploy,sts,ds -A -u

  # The number of changes of each type
  %[1]s diff --from 1h -A -o stat`

const (
	outputName    = "name"
	outputUnified = "unified"
	outputStat    = "stat"
)

// Exit codes of diff, like diff(1).
const (
	exitDifferent = 1
	exitTrouble   = 2
)

// diffCommand is one call of diff.
type diffCommand struct {
	env *env.Env

	from, to, output, labels         string
	allNamespaces, allFields, asYAML bool
	fromInstant, toInstant           history.Instant
	filter
}

// NewCommand makes the command diff.
func NewCommand(e *env.Env) *cobra.Command {
	d := &diffCommand{env: e}
	cmd := &cobra.Command{
		Use:     "diff --from instant [--to instant] [TYPE[,TYPE…] [NAME…] | TYPE/NAME…] [-A]",
		Short:   "Show what is different between two instants",
		Long:    diffLong,
		Example: fmt.Sprintf(diffExample, e.Command),
		RunE:    func(cmd *cobra.Command, args []string) error { return trouble(d.run(cmd, args)) },
		// Without this, a wrong setting would end with 1, which means that there are differences.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return trouble(e.Load(cmd)) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return trouble(env.MistakenFlag(cmd, err)) })
	flags := cmd.Flags()
	env.InstantVar(flags, &d.from, "from", "", "the first instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
	env.InstantVar(flags, &d.to, "to", "now", "the second instant")
	flags.BoolVarP(&d.allNamespaces, "all-namespaces", "A", false, "the whole cluster")
	d.filter.addFlags(flags)
	flags.StringVarP(&d.labels, "selector", "l", "", "only objects whose labels match at either instant, with =, ==, !=, in and notin")
	flags.BoolVarP(&d.asYAML, "unified", "u", false, "same as -o unified")
	flags.BoolVar(&d.allFields, "all-fields", false, "compare bookkeeping fields too")
	flags.StringVarP(&d.output, "output", "o", output.Text, "text, json, name, unified (diff of YAML) or stat (numbers per type)")
	return cmd
}

// trouble gives an error exit code 2, because 1 means that there are differences.
func trouble(err error) error {
	var exit *env.ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &env.ExitError{Code: exitTrouble, Err: err}
}

func (d *diffCommand) run(cmd *cobra.Command, args []string) error {
	if err := d.validate(cmd); err != nil {
		return err
	}
	namespace, err := d.env.Namespace(d.allNamespaces)
	if err != nil {
		return err
	}
	rec, err := d.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	different, err := d.answer(cmd.Context(), rec, args, namespace)
	switch err = errors.Join(err, rec.Close()); {
	case err != nil:
		return err
	case different:
		return &env.ExitError{Code: exitDifferent}
	}
	return nil
}

func (d *diffCommand) validate(cmd *cobra.Command) (err error) {
	if d.asYAML {
		if cmd.Flags().Changed("output") && d.output != outputUnified {
			return env.Mistake(cmd, fmt.Errorf("--unified and --output %s exclude each other", d.output))
		}
		d.output = outputUnified
	}
	if !slices.Contains([]string{output.Text, output.JSON, outputName, outputUnified, outputStat}, d.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, json, name, unified, stat", d.output))
	}
	if d.from == "" {
		return env.Mistake(cmd, errors.New("name the first instant, such as --from 1h"))
	}
	if d.fromInstant, err = d.env.Instant(d.from); err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if d.toInstant, err = d.env.Instant(d.to); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if err := d.filter.read(d.env, cmd, d.output == output.Text && d.env.Terminal()); err != nil {
		return err
	}
	if _, err = selection.New(d.labels, "", schema.GroupVersionKind{}, nil); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	return nil
}

// answer prints the differences, and reports whether there are any.
func (d *diffCommand) answer(ctx context.Context, rec *env.Record, args []string, namespace string) (bool, error) {
	if err := d.env.NoteNamespace(ctx, rec, namespace); err != nil {
		return false, err
	}
	targets, err := d.targets(ctx, rec, args, namespace)
	if err != nil {
		return false, err
	}
	scope := history.Scope{Streams: resource.StreamsOf(targets, namespace)}
	from, err := d.begin(ctx, rec, scope)
	if err != nil {
		return false, fmt.Errorf("--from: %w", err)
	}
	to, err := rec.Resolve(ctx, d.toInstant, scope)
	if err != nil {
		return false, fmt.Errorf("--to: %w", err)
	}
	d.env.Notes(from.Notes)
	d.env.Notes(to.Notes)
	if from.Time.After(to.Time) || from.Time.Equal(to.Time) && from.Seq > to.Seq {
		d.env.Note(fmt.Sprintf("--from %s is later than --to %s: the answer shows the changes backward in time", d.fromInstant, d.toInstant))
	}
	for _, t := range targets {
		d.env.Note(t.Resource.Confined(namespace))
	}
	selects, err := selection.New(d.labels, "", schema.GroupVersionKind{}, nil)
	if err != nil {
		return false, err
	}
	chosen, labels := selector.NewChosen(targets), known.Labels{}
	var noting sync.Mutex // protects labels
	choice := compare.Choice{Has: chosen.Has, Selects: func(doc patch.Doc) bool {
		noting.Lock()
		defer noting.Unlock()
		return labels.Matches(selects, doc)
	}}
	c := compare.New(rec.Record, choice, compare.Hooks{Notes: d.env.Notes, Progress: d.progress})
	for _, s := range resource.ScopesOf(targets, namespace) {
		if err := c.Read(ctx, from, to, s); err != nil {
			return false, err
		}
	}
	differences, err := c.Result(d.allFields)
	if err != nil {
		return false, err
	}
	d.askedFor(args, targets)
	shown, err := d.apply(differences, d.allFields)
	if err != nil {
		return false, err
	}
	if err := d.printer().write(shown, c.OnlyBookkeeping, d.more()); err != nil {
		return false, err
	}
	for _, text := range append(labels.Unknown(selects), d.hints(len(shown) == 0)...) {
		d.env.Note(text)
	}
	different := len(shown) > 0 || !d.rules.OnCommandLine && d.folded.Total() > 0
	return different, errors.Join(c.Damage(), chosen.Missing("at either instant"))
}

func (d *diffCommand) progress(title string) (update func(history.Progress), end func()) {
	p := d.env.Progress(title)
	return p.Update, p.End
}

// begin resolves the first instant. If it is before the record began, begin returns the first instant of the record, and
// prints a note.
func (d *diffCommand) begin(ctx context.Context, rec *env.Record, scope history.Scope) (history.Point, error) {
	from, err := rec.Resolve(ctx, d.fromInstant, scope)
	var before *history.BeforeRecordError
	if !errors.As(err, &before) || before.FirstSeq == 0 {
		return from, err
	}
	d.env.Note(fmt.Sprintf("the record begins at %s, after %s: the output shows the changes since that beginning", before.Begin(), d.fromInstant))
	return rec.Resolve(ctx, history.AtSeq(before.FirstSeq), scope)
}

// targets returns the resources and objects to compare, by their names at the second instant.
func (d *diffCommand) targets(ctx context.Context, rec *env.Record, args []string, namespace string) ([]resource.Target, error) {
	at, _, err := d.env.TimeOf(ctx, rec, d.toInstant)
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, at, d.env.Note)
	if err != nil {
		return nil, err
	}
	targets, err := catalog.Targets(args)
	if err != nil || len(args) > 0 {
		return targets, err
	}
	for _, r := range catalog.Resources {
		if namespace == "" || r.Namespaced {
			targets = append(targets, resource.Target{Resource: r})
		}
	}
	return targets, nil
}

func (d *diffCommand) printer() *diffPrinter {
	p := &diffPrinter{out: d.env.IOStreams.Out, note: d.env.Note, format: d.output, allFields: d.allFields, style: d.env.Style(), width: d.env.Width()}
	if d.env.Terminal() {
		p.words.Room = words.RoomOnTerminal
	}
	return p
}
