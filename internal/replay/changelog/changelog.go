package changelog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/field"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// defaultSince is how far back a log of many objects goes unless it is told.
const defaultSince = "1h"

const logLong = `Show what was changed, when, and by which field manager.

With a name, it is the life of one object, from its creation on: one that was deleted and made again has several, told apart by
UID. Without, it is the log of a namespace (-n, else that of the current context) or of the cluster (-A), of the types that are
named, from --since on (default ` + defaultSince + `).

Elements of lists are called by what names them: spec.template.spec.containers[web].image. --path takes such paths, with * for any
element or member, or JSON pointers; what is below the path counts too. Values of Secrets are not in the record: that they changed
is. What the server counts on its own (metadata.managedFields, resourceVersion and generation, status.observedGeneration) is left
out unless --all-fields or --path asks for it. So are, in a log without a name, objects that were only found or stored again
(--type Sync has them).

A field manager is named only if the version's managedFields prove that it wrote; "-" stands for an unknown writer. A watch does not say
who deleted an object. --manager matches proved writers only.

A ~ before a time says that it is an estimate. Gaps and pauses of the record are lines of the log, where they fall.

-o json prints one object a line: cluster, seq, observedAt, occurredAt, estimated, type (Added, Updated, Deleted, Sync), source
(watch, list, relist, resync, schema, inferred), group, version, resource, kind, namespace, name, uid, resourceVersion, manager,
subresource, changes, and diff with --diff. A change has op (add, remove, replace, reorder), path, pointer (RFC 6901, in this
version; the last part of what was removed, in the version before), old and new; the first version of an object is one add at path "". A line with the one member note
is a gap, a pause or a damaged row: kind, group, resource, from, to, seq, text.

Exit code 1 says that something is damaged or missing: the rest is shown all the same.`

const logExample = `  # The life of a Deployment
  %[1]s log deployment/web -n shop

  # What changed in a namespace in the five minutes before 03:12
  %[1]s log -n shop --since 03:07 --until 03:12

  # Who changed an image in the last two days
  %[1]s log deploy -A --path 'spec.template.spec.containers[*].image' --since 2d

  # Follow what kubectl changes, as YAML differences
  %[1]s log -A -f --manager 'kubectl*' --diff`

// logCommand is one call of log.
type logCommand struct {
	env *env.Env

	since, until                  string
	paths, managers, types, kinds []string
	output                        string
	allNamespaces, allFields      bool
	diff, follow, newestFirst     bool
	limit                         int

	patterns []field.Pattern
	wanted   []cache.DeltaType
	bounds   entries.Bounds
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
	env.InstantVar(flags, &l.since, "since", "", "instant from which on (default: the beginning with a name, else "+defaultSince+")")
	env.InstantVar(flags, &l.until, "until", "now", "instant up to which, inclusive")
	flags.BoolVarP(&l.allNamespaces, "all-namespaces", "A", false, "the whole cluster")
	flags.StringSliceVar(&l.kinds, "kind", nil, "only these types; the same as naming them as arguments")
	flags.StringArrayVar(&l.paths, "path", nil, "only changes at or below a path, such as spec.replicas or 'spec.containers[*].image'")
	flags.StringSliceVar(&l.managers, "manager", nil, "only what these field managers wrote; * stands for any text")
	flags.StringSliceVar(&l.types, "type", nil, "only deltas of these types: Added, Updated, Deleted, Sync")
	flags.BoolVar(&l.diff, "diff", false, "show each change as a unified diff of YAML")
	flags.BoolVar(&l.allFields, "all-fields", false, "show bookkeeping fields too")
	flags.BoolVarP(&l.follow, "follow", "f", false, "go on with what comes, until interrupted")
	flags.IntVar(&l.limit, "limit", 0, "at most so many deltas")
	flags.BoolVar(&l.newestFirst, "reverse", false, fmt.Sprintf("newest first, at most %d unless --limit says", mostReversed))
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
	rec, err := l.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	return errors.Join(l.answer(cmd.Context(), rec, args, namespace), rec.Close())
}

// validate refuses what cannot be meant before anything is read.
func (l *logCommand) validate(cmd *cobra.Command) (err error) {
	if !slices.Contains([]string{output.Text, output.Wide, output.JSON}, l.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q is none of text, wide, json", l.output))
	}
	for _, text := range l.paths {
		p, err := field.ParsePattern(text)
		if err != nil {
			return err
		}
		l.patterns = append(l.patterns, p)
	}
	for _, text := range l.managers {
		if _, err := path.Match(text, ""); err != nil {
			return fmt.Errorf("--manager %q: %w", text, err)
		}
	}
	if l.wanted, err = deltaTypes(l.types); err != nil {
		return env.Mistake(cmd, err)
	}
	switch {
	case l.follow && cmd.Flags().Changed("until"):
		return env.Mistake(cmd, errors.New("--follow has no end, so it cannot be used with --until"))
	case l.follow && l.newestFirst:
		return env.Mistake(cmd, errors.New("--follow cannot be used with --reverse"))
	case l.limit < 0:
		return env.Mistake(cmd, fmt.Errorf("--limit %d: it must be 1 or more", l.limit))
	}
	if l.since != "" {
		if l.bounds.Since, err = l.env.Instant(l.since); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		l.bounds.HasSince = true
	}
	if l.bounds.Until, err = l.env.Instant(l.until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	return nil
}

func deltaTypes(names []string) ([]cache.DeltaType, error) {
	known := []cache.DeltaType{cache.Added, cache.Updated, cache.Deleted, cache.Sync}
	var types []cache.DeltaType
	for _, name := range names {
		i := slices.IndexFunc(known, func(t cache.DeltaType) bool { return strings.EqualFold(string(t), name) })
		if i < 0 {
			return nil, fmt.Errorf("--type %q is none of Added, Updated, Deleted, Sync", name)
		}
		types = append(types, known[i])
	}
	return types, nil
}

func (l *logCommand) answer(ctx context.Context, rec *env.Record, args []string, namespace string) error {
	at, _, err := l.env.TimeOf(ctx, rec, l.bounds.Until)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, at, l.env.Note)
	if err != nil {
		return err
	}
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
	if !named {
		return l.many(ctx, rec, catalog, targets, namespace)
	}
	return l.lives(ctx, rec, targets, namespace)
}

// many is the log of a namespace or cluster.
func (l *logCommand) many(ctx context.Context, rec *env.Record, catalog *resource.Catalog, targets []resource.Target, namespace string) error {
	if !l.bounds.HasSince {
		var err error
		if l.bounds.Since, err = l.env.Instant(defaultSince); err != nil {
			return err
		}
		l.bounds.HasSince, l.bounds.BySelf = true, true
	}
	scope := scopeOfMany(catalog, targets, namespace)
	for _, t := range targets {
		l.env.Note(t.Resource.Confined(namespace))
	}
	w := l.writer(rec, scope)
	w.printer.objects = true
	w.fold.QuietSync = !slices.Contains(l.wanted, cache.Sync)
	if len(targets) == 0 && namespace == "" {
		scope.Streams = nil // also those of resources that are yet to come
	}
	mixed := namespace != "" && slices.ContainsFunc(targets, func(t resource.Target) bool { return !t.Resource.Namespaced })
	query := history.Query{Scope: scope, Types: l.wanted}
	if !mixed {
		query.Namespace = namespace
	}
	w.keep = func(d *history.Delta) bool { return !mixed || d.Namespace == namespace || !d.Stream.Namespaced }
	return w.write(ctx, query)
}

// scopeOfMany are the streams that many objects are read from. No targets are all resources of the cluster, or of a namespace.
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

// lives is the log of objects by name, one after the other.
func (l *logCommand) lives(ctx context.Context, rec *env.Record, targets []resource.Target, namespace string) error {
	var scopes []history.Scope
	for _, t := range targets {
		scope := history.Scope{Streams: t.Resource.StreamIDs(namespace), Namespace: namespace}
		if !t.Resource.Namespaced {
			scope = history.Scope{Streams: t.Resource.StreamIDs("")}
		}
		if len(t.Names) == 0 {
			return fmt.Errorf("%s has no name: name an object of each type, or none", t.Resource)
		}
		for _, name := range t.Names {
			scope.Name = name
			scopes = append(scopes, scope)
		}
	}
	if l.follow && len(scopes) > 1 {
		return errors.New("--follow takes one object, or types without names")
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
	w.printer.objects = l.newestFirst // no title could stand over a life
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
	resource := ""
	for _, t := range targets {
		if slices.Contains(t.Names, scope.Name) {
			resource = t.Resource.String()
		}
	}
	where := ""
	if scope.Namespace != "" {
		where = " in namespace " + scope.Namespace
	}
	return fmt.Errorf("%s %q was never recorded%s", resource, scope.Name, where)
}

func (l *logCommand) writer(rec *env.Record, scope history.Scope) *logWriter {
	p := &logPrinter{out: l.env.IOStreams.Out, format: l.output, zone: l.env.Zone()}
	if l.output == output.Text && telemetry.IsTerminal(l.env.IOStreams.Out) {
		p.words.Room = words.RoomOnTerminal
	}
	f := &entries.Fold{Cluster: rec.Cluster().Name, Managers: l.managers, Types: l.wanted, Patterns: l.patterns, AllFields: l.allFields, Diff: l.diff}
	return &logWriter{logCommand: l, rec: rec, scope: scope, printer: p, fold: f, keep: func(*history.Delta) bool { return true }}
}
