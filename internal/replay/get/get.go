package get

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/kubectl"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
	"github.com/kuberewind/kuberewind/internal/replay/view"
)

const getLong = `Show objects as they were at an instant, as kubectl get would have shown them at that instant. get prints the columns of built-in kinds and of custom
resources (from the definition at that instant). AGE and similar columns are relative to the instant. Short names and categories are those of the server.

--index selects objects by an index of the record: namespace, label (key or key=value), owner (UID), node, uid.

If an object was deleted, get fails, and prints when the object was deleted, and by which delta. --last shows the last state of one deleted object.

-o takes the formats of kubectl get: https://kubernetes.io/docs/reference/kubectl/#output-options

Exit code 1 means that something was not found or is damaged. get still shows the rest.`

// links matches the links in kubectl's texts for -o and --template, which are longer than a line of help.
var links = regexp.MustCompile(` See custom columns \[.*| \[http[^\]]*\]`)

const getExample = `  # Pods as they were ten minutes ago
  %[1]s get pods -n shop --at 10m

  # The output of kubectl get all, in all namespaces
  %[1]s get all -A --at 2026-01-31T03:12:00Z

  # One object as it was at a resource version
  %[1]s get deployment/web -n shop --at rv:48213 -o yaml

  # The last state of a deleted Pod
  %[1]s get pod/web-7d4b9-x2x7k -n shop --last -o wide

  # The Pods of a node; the Pods of a ReplicaSet
  %[1]s get pods -A --index node=worker-1 --at 1h
  %[1]s get pods -A --index owner=7a1c9e52-9f7b-4cf1-8a39-3a1ad1b2a9f0 --at 1h`

// getCommand is one call of get.
type getCommand struct {
	env           *env.Env
	kubectl       *kubectlget.GetOptions
	at            string
	index         []string
	fieldSelector string
	labelSelector string
	allNamespaces bool
	last          bool
}

// NewCommand makes the command get.
func NewCommand(e *env.Env) *cobra.Command {
	g := &getCommand{env: e, kubectl: kubectlget.NewGetOptions(e.Command, e.IOStreams)}
	cmd := &cobra.Command{
		Use:     "get (TYPE[.VERSION][.GROUP][,TYPE…] [NAME…] | TYPE/NAME…) [--at instant]",
		Short:   "Show objects as they were at an instant",
		Long:    getLong,
		Example: fmt.Sprintf(getExample, e.Command),
		RunE:    func(cmd *cobra.Command, args []string) error { return g.run(cmd, args) },
	}
	flags := cmd.Flags()
	env.InstantVar(flags, &g.at, "at", "now", "instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
	flags.StringArrayVar(&g.index, "index", nil, "only objects that an index holds under a value: name=value (namespace, label, owner, node, uid)")
	flags.StringVar(&g.fieldSelector, "field-selector", "", "selector by fields that the API server supports, with =, == and !=")
	flags.StringVarP(&g.labelSelector, "selector", "l", "", "selector by labels, with =, ==, !=, in and notin")
	flags.BoolVarP(&g.allNamespaces, "all-namespaces", "A", false, "the objects of all namespaces")
	flags.BoolVar(&g.last, "last", false, "the last state of one named object that was deleted before the instant")
	flags.BoolVar(&g.kubectl.IgnoreNotFound, "ignore-not-found", false, "treat a missing object as no error")
	g.kubectl.PrintFlags.AddFlags(cmd)
	for _, name := range []string{"output", "template"} {
		f := flags.Lookup(name)
		f.Usage = links.ReplaceAllString(f.Usage, "")
	}
	return cmd
}

func (g *getCommand) run(cmd *cobra.Command, args []string) error {
	instant, index, err := g.validate(cmd, args)
	if err != nil {
		return err
	}
	namespace, err := g.env.Namespace(g.allNamespaces)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	rec, err := g.env.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(g.answer(cmd, rec, args, instant, index, namespace), rec.Close())
}

// validate rejects contradictory flags before the command reads the record.
func (g *getCommand) validate(cmd *cobra.Command, args []string) (history.Instant, []selector.Index, error) {
	instant, err := g.env.Instant(g.at)
	if err != nil {
		return instant, nil, err
	}
	index, err := selector.ParseIndices(g.index)
	if err != nil {
		return instant, nil, err
	}
	if len(args) == 0 {
		return instant, nil, env.Mistake(cmd, errors.New("name a type of resource to get, such as pods"))
	}
	if g.last && g.allNamespaces {
		return instant, nil, env.Mistake(cmd, errors.New("--last shows one object: name its namespace with -n instead of -A"))
	}
	flags := g.kubectl.PrintFlags.Copy()
	if _, err := flags.ToPrinter(); err != nil {
		return instant, nil, err
	}
	g.kubectl.LabelSelector, g.kubectl.FieldSelector, g.kubectl.AllNamespaces = g.labelSelector, g.fieldSelector, g.allNamespaces
	return instant, index, nil
}

func (g *getCommand) answer(cmd *cobra.Command, rec *env.Record, args []string, instant history.Instant, index []selector.Index, namespace string) error {
	ctx := cmd.Context()
	if g.last {
		var err error
		if instant, err = g.lastInstant(ctx, rec, args, instant, namespace); err != nil {
			return err
		}
	}
	view, targets, err := view.Look(ctx, g.env, rec, instant, args, namespace)
	if err != nil {
		return err
	}
	if err := view.Load(ctx, targets, namespace); err != nil {
		return err
	}
	transport := &transport{ctx: ctx, view: view, index: index, whole: g.printsWhole()}
	factory := cmdutil.NewFactory(&kubectl.Clients{Namespace: namespace, Catalog: view.Catalog, Transport: transport})
	var tables bytes.Buffer
	out := kubectl.UntilDone(ctx, g.env.IOStreams.Out)
	g.kubectl.IOStreams = genericiooptions.IOStreams{In: g.env.IOStreams.In, Out: out, ErrOut: kubectl.HarmlessMessages(g.env.IOStreams.ErrOut)}
	if g.printsTables() && g.env.Width() > 0 {
		g.kubectl.Out = &tables
	}
	if err := g.kubectl.Complete(factory, cmd, args); err != nil {
		return err
	}
	if err := g.kubectl.Validate(); err != nil {
		return err
	}
	g.renderOutput()
	err = errors.Join(g.kubectl.Run(factory, args), writeFolded(out, &tables, g.env.Width()))
	if transport.failed != nil {
		err = transport.failed
	}
	return errors.Join(err, transport.unwritten, view.Damage())
}
