package changelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/folding"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/words"
)

const logLong = `Show what changed, when, and which field manager wrote it, if the record proves it.

With a name, log shows the life of one object, from its creation on. If an object was deleted and created again, it has several lives, each with its own UID.
Without a name, log shows a namespace (-n, or the namespace of the current context) or the cluster (-A), limited to the types that you name, from --since on
(default ` + defaultSince + `).

On a terminal, log shows the changes of people and deployers, and counts the rest in its last line ("folds" it): Events, Leases, Endpoints of controllers,
bindings, resyncs, and versions that change only the status or only managedFields. These exceptions are shown:
  - an eviction, and a Pod whose container begins to wait, as in
    ImagePullBackOff, although only the status changes
  - a type that you name
If objects of one owner change in the same way within a second, log prints one line with their number; -v shows each. Folding looks at what changed, never
at who changed it. JSON and pipes fold nothing, unless -v, --only, --ignore or --events is on the command line; --verbose=false folds there too.
replay.yaml can set verbose, only, ignore and events.

Paths name an element of a list by its key: spec.template.spec.containers[web].image. --path takes such paths, with * for any element or member, or JSON
pointers. A path includes everything below it. With the path of a list element, a first list and a deletion are no changes. The record does not hold the
values of Secrets, only that they changed. log hides bookkeeping (metadata.managedFields, resourceVersion and generation, status.observedGeneration), unless
--all-fields or --path names it. Without a name, log also hides objects that existed before their recording began (--type Sync shows them).

log names a field manager only if the version's managedFields prove that it wrote. "-" is an unknown writer. "kubectl-label?" is the former owner of a removed
field; another manager may have removed it. A watch does not say who deleted an object, so a Deleted has the last proved writer. --manager matches only
proved writers.

A ~ before a time means that the time is an estimate. In a pause, the order of resource versions bounds each estimate. --since and --until include every
change that may have happened between them. A ? means that clocks of servers contradict that order. Gaps and pauses of the record are lines of the log, in
the order of time.

-o json prints one object per line: cluster, seq, observedAt, occurredAt, estimated, notBefore, notAfter, contradictory, type (Added, Updated, Deleted, Sync),
source (watch, list, relist, resync, schema, inferred), group, version, resource, kind, namespace, name, uid, resourceVersion, manager, subresource,
managerEvidence (entry, owner, none), managerHint, lastManager of a Deleted (manager, subresource, seq, occurredAt, estimated, contradictory), changes, and
diff with --diff. A change has op (add, remove, replace, reorder), path, pointer (RFC 6901, in this version; for a removed value, its last part is that of the
previous version), old and new; the first version of an object is one add at path "". A line that has only the member note is a gap, a pause or a damaged row:
kind, group, resource, from, to, seq, text.

Exit code 1 means that something is damaged or missing. log still shows the rest.`

const logExample = `  # The life of a Deployment
  %[1]s log deployment/web -n shop

  # What changed in a namespace around 03:12
  %[1]s log -n shop --around 03:12 --within 5m

  # Who changed an image in the last two days
  %[1]s log deploy -A --since 2d \
    --path 'spec.template.spec.containers[*].image'

  # The newest ten changes in the cluster, without annotations
  %[1]s log -A --limit 10 --ignore metadata.annotations

  # Follow the changes that kubectl makes, as a diff of YAML
  %[1]s log -A -f --manager 'kubectl*' --diff`

// logCommand is one call of log.
type logCommand struct {
	env *env.Env
	window
	filter
	folding folding.Rules

	namespace       string // "" for all
	brief           map[schema.GroupKind]string
	output          string
	diff, allFields bool
}

// NewCommand makes the command log.
func NewCommand(e *env.Env) *cobra.Command {
	l := &logCommand{env: e}
	cmd := &cobra.Command{
		Use:     "log [TYPE[,TYPE…] [NAME…] | TYPE/NAME…] [-A]",
		Short:   "Show the life of an object, or what changed in a namespace or the cluster",
		Long:    logLong,
		Example: fmt.Sprintf(logExample, e.Command),
		RunE:    func(cmd *cobra.Command, args []string) error { return l.run(cmd, args) },
	}
	flags := cmd.Flags()
	l.window.addFlags(flags)
	l.filter.addFlags(flags)
	folding.AddFlags(flags)
	flags.BoolVar(&l.diff, "diff", false, "show each change as a unified diff of YAML")
	flags.BoolVar(&l.allFields, "all-fields", false, "show bookkeeping fields too")
	flags.StringVarP(&l.output, "output", "o", output.Text, "text, wide or json")
	return cmd
}

func (l *logCommand) run(cmd *cobra.Command, args []string) error {
	if err := l.validate(cmd); err != nil {
		return err
	}
	namespace, err := l.env.Namespace(l.allNamespaces)
	if err != nil {
		return err
	}
	l.namespace = namespace
	rec, err := l.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	return errors.Join(l.answer(cmd.Context(), rec, args, namespace), rec.Close())
}

// validate rejects contradictory flags before the command reads the record.
func (l *logCommand) validate(cmd *cobra.Command) (err error) {
	if !slices.Contains([]string{output.Text, output.Wide, output.JSON}, l.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, wide, json", l.output))
	}
	if err := l.filter.validate(cmd); err != nil {
		return err
	}
	if err := l.window.validate(cmd); err != nil {
		return err
	}
	if l.folding, err = folding.Of(l.env, cmd, l.person()); err != nil {
		return err
	}
	return l.window.read(l.env)
}

// person reports whether a person reads the log at a terminal.
func (l *logCommand) person() bool {
	return l.output != output.JSON && l.env.Terminal()
}

func (l *logCommand) answer(ctx context.Context, rec *env.Record, args []string, namespace string) error {
	if err := l.place(ctx, l.env, rec); err != nil {
		return err
	}
	at, _, err := l.env.TimeOf(ctx, rec, l.bounds.Until)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, at, l.env.Note)
	if err != nil {
		return err
	}
	l.brief = catalog.Brief()
	targets, err := catalog.Targets(args)
	if err != nil {
		return err
	}
	if len(l.kinds) > 0 {
		more, err := catalog.Targets([]string{strings.Join(l.kinds, ",")})
		if err != nil {
			return err
		}
		targets = append(targets, more...)
	}
	named := slices.ContainsFunc(targets, func(t resource.Target) bool { return len(t.Names) > 0 })
	switch {
	case l.owned && !named:
		return errors.New("--owned needs a named object, such as deployment/web")
	case !named:
		return l.many(ctx, rec, catalog, targets, namespace)
	}
	return l.lives(ctx, rec, targets, namespace)
}

// many prints the log of a namespace or the cluster.
func (l *logCommand) many(ctx context.Context, rec *env.Record, catalog *resource.Catalog, targets []resource.Target, namespace string) error {
	if err := l.sinceDefault(l.env); err != nil {
		return err
	}
	l.folding.Asked = askedFor(targets)
	scope := scopeOfMany(catalog, targets, namespace)
	for _, t := range targets {
		l.env.Note(t.Resource.Confined(namespace))
	}
	w := l.writer(rec, scope)
	w.printer.objects = true
	w.fold.QuietSync = !slices.Contains(l.wanted, delta.Sync) && !l.folding.All()
	if len(targets) == 0 && namespace == "" {
		scope.Streams = nil // nil includes streams that begin later
	}
	mixed := namespace != "" && slices.ContainsFunc(targets, func(t resource.Target) bool { return !t.Resource.Namespaced })
	query := history.Query{Scope: scope, Types: l.wanted}
	if !mixed {
		query.Namespace = namespace
	}
	w.keep = func(d *history.Delta) bool { return !mixed || d.Namespace == namespace || !d.Stream.Namespaced }
	return w.write(ctx, query)
}

// scopeOfMany returns the streams of the targets. Without targets, it returns the streams of all resources of the cluster,
// or of all namespaced resources.
func scopeOfMany(catalog *resource.Catalog, targets []resource.Target, namespace string) history.Scope {
	if len(targets) > 0 {
		return history.Scope{Streams: resource.StreamsOf(targets, namespace)}
	}
	for _, r := range catalog.Resources {
		if namespace == "" || r.Namespaced {
			targets = append(targets, resource.Target{Resource: r})
		}
	}
	return history.Scope{Streams: resource.StreamsOf(targets, namespace)}
}

// lives prints the logs of named objects, one after the other.
func (l *logCommand) lives(ctx context.Context, rec *env.Record, targets []resource.Target, namespace string) error {
	l.folding.Asked = askedFor(targets)
	var scopes []history.Scope
	for _, t := range targets {
		scope := history.Scope{Streams: t.Resource.StreamIDs(namespace), Namespace: namespace}
		if !t.Resource.Namespaced {
			scope = history.Scope{Streams: t.Resource.StreamIDs("")}
		}
		if len(t.Names) == 0 {
			return fmt.Errorf("%s has no object name: name an object for each type, or for none", t.Resource)
		}
		for _, name := range t.Names {
			scope.Name = name
			scopes = append(scopes, scope)
		}
	}
	if l.follow && (l.owned || len(scopes) > 1) {
		return errors.New("--follow takes one object, or types without names")
	}
	if l.owned {
		return l.withOwned(ctx, rec, targets, scopes)
	}
	var failed []error
	for i, scope := range scopes {
		err := l.life(ctx, rec, targets, scope, i > 0)
		if ctx.Err() != nil {
			return err
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (l *logCommand) life(ctx context.Context, rec *env.Record, targets []resource.Target, scope history.Scope, apart bool) error {
	lives := map[int64]history.Life{}
	order := map[int64]int{}
	for life, err := range rec.Lives(ctx, history.LifeQuery{Scope: scope}) {
		if err != nil {
			return err
		}
		order[life.ObjectID] = len(lives)
		lives[life.ObjectID] = life
	}
	if len(lives) == 0 && !l.follow {
		return notRecorded(targets, scope)
	}
	w := l.writer(rec, scope)
	w.printer.objects = l.newestFirst // newest first, a title cannot precede its life
	w.header = func(d *history.Delta) string {
		life, known := lives[d.ObjectID]
		if !known {
			order[d.ObjectID] = len(lives)
			lives[d.ObjectID] = history.Life{ObjectID: d.ObjectID, Stream: d.Stream, Namespace: d.Namespace, Name: d.Name, UID: d.UID}
			life = lives[d.ObjectID]
		}
		title := fmt.Sprintf("%s %s  uid %s", life.Stream.Kind, output.ObjectName(life.Namespace, life.Name), life.UID)
		if len(lives) > 1 {
			title += fmt.Sprintf("  (life %d of %d)", order[d.ObjectID]+1, len(lives))
		}
		if apart || order[d.ObjectID] > 0 && w.shown > 0 {
			title = "\n" + title
		}
		apart = false
		return title
	}
	return w.write(ctx, history.Query{Scope: scope, Types: l.wanted})
}

func notRecorded(targets []resource.Target, scope history.Scope) error {
	i := slices.IndexFunc(targets, func(t resource.Target) bool { return slices.Contains(t.Names, scope.Name) })
	return targets[i].Resource.NeverRecorded(scope)
}

func (l *logCommand) writer(rec *env.Record, scope history.Scope) *logWriter {
	p := &logPrinter{out: l.env.IOStreams.Out, format: l.output, zone: l.env.Zone()}
	if l.output != output.JSON {
		p.style = l.env.Style()
	}
	if l.output == output.Text && l.person() {
		p.words.Room, p.screen = words.RoomOnTerminal, &screen{width: l.env.Width(), namespace: l.namespace, brief: l.brief}
	}
	f := &entries.Fold{
		Cluster: rec.Cluster().Name, Managers: l.managers, Types: l.wanted, Patterns: l.patterns, Selects: l.selects, Indices: l.indexed,
		AllFields: l.allFields, Diff: l.diff, Folding: l.folding, Zone: l.env.Zone(),
	}
	p.merge = p.screen != nil && !l.follow && !l.folding.All()
	p.groups.folded = func(e *entries.Entry) { f.Folded.Add(change.Termination, e.Kind) }
	return &logWriter{logCommand: l, rec: rec, scope: scope, printer: p, fold: f, keep: func(*history.Delta) bool { return true }}
}
