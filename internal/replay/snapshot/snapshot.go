package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/view"
	"github.com/kuberewind/kuberewind/internal/selection"
)

const snapshotLong = `Write the whole cluster, or part of it, as it was at an instant. Objects are exactly as the API server served them, with UIDs and resource versions.

  --format yaml    a List, for kubectl apply
  --format json    a List in JSON; keeps numbers of any size
  --format files   one file per object:
                   <group>/<resource>/<namespace>/<name>.yaml
  --format tar     the same files in an archive, compressed if its name ends in
                   .gz, .tgz or .zst

Without --format, --output sets the format:
  -, .yaml, .yml                  yaml; - is standard output
  .json                           json
  .tar, .tar.gz, .tgz, .tar.zst   tar
  any other path                  files, in this directory

A file gets its name when it is complete. A directory is complete when it has its MANIFEST.json, which describes the snapshot: the instant, and which objects
are missing and why. A List has the manifest in its annotation kuberewind/manifest, without the results that are known only at the end.

--for-apply writes objects that you can apply to another cluster. It removes UIDs, resource versions, managed fields, status, owners and values that the API
server chose. It writes Namespaces and definitions first. It skips objects that controllers, nodes and the API server make by themselves, and lists the skipped
objects on standard error and in the manifest. Custom resources can be applied when their definitions are established: apply twice, or apply the directories
1-definitions and 2-objects one after the other.

By default, the record holds keyed hashes instead of the values of Secrets. --for-apply skips such Secrets; --hashed-secrets keeps them, with the hash as value.`

const snapshotExample = `  # Everything as it was an hour ago, one file per object
  %[1]s snapshot --at 1h -o ./cluster

  # A namespace, as an archive
  %[1]s snapshot -n shop --at 2026-01-31T03:12:00Z -o shop.tar.zst

  # Copy the objects of a namespace into another cluster
  %[1]s snapshot -n shop --at 1h --for-apply |
    kubectl --context other apply --server-side -f -

  # The number of objects of each kind
  %[1]s snapshot --at -1d --format json |
    jq -r '.items[].kind' | sort | uniq -c`

type snapshotCommand struct {
	env           *env.Env
	at            string
	output        string
	format        string
	labelSelector string
	allNamespaces bool
	force         bool
	forApply      bool
	hashedSecrets bool
}

// NewCommand makes the command snapshot.
func NewCommand(e *env.Env) *cobra.Command {
	s := &snapshotCommand{env: e}
	cmd := &cobra.Command{
		Use:     "snapshot [TYPE[,TYPE…] [NAME…] | TYPE/NAME…] [--at instant] [-o -|file|directory]",
		Short:   "Write the cluster as it was at an instant",
		Long:    snapshotLong,
		Example: fmt.Sprintf(snapshotExample, e.Command),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	env.InstantVar(flags, &s.at, "at", "now", "instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
	flags.StringVarP(&s.output, "output", "o", "-", "file or directory, - for standard output")
	flags.StringVar(&s.format, "format", "", "yaml (or list), json, files or tar (default: by the name of --output)")
	flags.StringVarP(&s.labelSelector, "selector", "l", "", "selector by labels, with =, ==, !=, in and notin")
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "all namespaces and all cluster-scoped objects (default unless -n names a namespace)")
	flags.BoolVar(&s.force, "force", false, "overwrite an existing file, or write into a directory that is not empty; other files stay in it")
	flags.BoolVar(&s.forApply, "for-apply", false, "write objects for kubectl apply on another cluster")
	flags.BoolVar(&s.hashedSecrets, "hashed-secrets", false, "with --for-apply: keep Secrets whose values are hashes")
	return cmd
}

func (s *snapshotCommand) run(ctx context.Context, args []string) (err error) {
	instant, err := s.env.Instant(s.at)
	if err != nil {
		return err
	}
	if s.hashedSecrets && !s.forApply {
		return errors.New("--hashed-secrets needs --for-apply: without it, snapshot writes Secrets as they are in the record")
	}
	labels, err := selection.New(s.labelSelector, "", schema.GroupVersionKind{}, nil)
	if err != nil {
		return fmt.Errorf("--selector %q: %w", s.labelSelector, err)
	}
	target, err := newTarget(s.env.IOStreams.Out, s.output, s.format, s.force)
	if err != nil {
		return err
	}
	// Unlike get, snapshot ignores the kubeconfig's default namespace: without -n, it writes the whole cluster.
	namespace := *s.env.Config.Namespace
	if s.allNamespaces {
		namespace = ""
	}
	rec, err := s.env.Open(ctx)
	if err != nil {
		return errors.Join(err, target.abandon())
	}
	return errors.Join(s.write(ctx, rec, args, instant, namespace, labels, target), rec.Close())
}

func (s *snapshotCommand) write(ctx context.Context, rec *env.Record, args []string, instant history.Instant, namespace string, labels selection.Selector, to *target) error {
	v, targets, err := view.Look(ctx, s.env, rec, instant, args, namespace)
	if err != nil {
		return errors.Join(err, to.abandon())
	}
	if namespace != "" && len(args) == 0 {
		targets = namespaced(targets)
	}
	if err := v.Load(ctx, targets, namespace); err != nil {
		return errors.Join(err, to.abandon())
	}
	m, err := newManifest(ctx, v, targets, namespace)
	if err != nil {
		return errors.Join(err, to.abandon())
	}
	form := &form{asIs: !s.forApply, hashedSecrets: s.hashedSecrets, view: v, labels: labels, manifest: m}
	if s.forApply || !labels.EveryLabel() {
		m.recount() // the number of written objects is not known yet
	}
	if err := to.begin(m); err != nil {
		return errors.Join(err, to.abandon())
	}
	m.recount()
	if err := s.each(ctx, form, to); err != nil {
		return errors.Join(err, to.abandon())
	}
	if err := to.end(m); err != nil {
		return errors.Join(err, to.abandon())
	}
	s.say(form)
	for _, text := range form.seen.Unknown(labels) {
		s.env.Note(text)
	}
	return errors.Join(v.Damage(), form.unwritten(), v.Chosen.Missing("at "+instant.String()))
}

// each writes every object. It unpacks one object at a time.
func (s *snapshotCommand) each(ctx context.Context, form *form, to *target) error {
	progress := s.env.Progress("writing the snapshot")
	defer progress.End()
	done, total := int64(0), int64(form.view.Objects.Len())
	for _, resource := range form.order(form.view.Objects.Resources()) {
		for key, doc := range form.view.Objects.Resource(resource).All() {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			done++
			progress.Update(history.Progress{Stage: "objects", Done: done, Total: total})
			if err := form.write(to, resource, key, doc); err != nil {
				return err
			}
		}
	}
	return nil
}

// say prints notes about hashes, skipped objects and replaced texts.
func (s *snapshotCommand) say(f *form) {
	if f.asIs && f.manifest.HashedSecrets > 0 {
		s.env.Note(fmt.Sprintf("the values of %s are keyed hashes, as the recorder wrote them", output.Counted(f.manifest.HashedSecrets, "Secret")))
	}
	for _, text := range f.manifest.skipped() {
		s.env.Note("skipped: " + text)
	}
	for _, replaced := range f.manifest.Replaced {
		s.env.Note(replaced)
	}
	if f.customs > 0 && f.definitions > 0 && s.forApply {
		s.env.Note("custom resources can be applied only when their definitions are established: apply twice")
	}
}

func namespaced(targets []resource.Target) []resource.Target {
	var kept []resource.Target
	for _, t := range targets {
		if t.Resource.Namespaced {
			kept = append(kept, t)
		}
	}
	return kept
}
