package describe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlresource "k8s.io/cli-runtime/pkg/resource"
	"k8s.io/klog/v2"
	kubectlcommand "k8s.io/kubectl/pkg/cmd/describe"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	kubectldescribe "k8s.io/kubectl/pkg/describe"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/kubectl"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/replay/view"
)

const long = `Show details of objects as they were at an instant, as kubectl describe would have shown them at that instant. describe includes the Events that the server
still had, and related objects, such as the Pods of a Node.

describe prints the recorded times, in the local zone like kubectl. Set TZ=UTC for UTC. Ages are relative to the instant.

If no object has the name, describe shows the objects whose names begin with it, like kubectl. If an object was deleted, describe fails, and prints when the
object was deleted, and by which delta. For several objects, use --show-events to show their Events.`

const example = `  # A Pod as it was ten minutes ago, with its Events at that time
  %[1]s describe pod/web-7d4b9-x2x7k -n shop --at 10m

  # The Deployment when the alert fired
  %[1]s describe deployment web -n shop --at 2026-01-31T03:12:00Z

  # All Pods with a label, with their Events
  %[1]s describe pods -n shop -l app=web --show-events --at 03:12

  # A Node and its Pods
  %[1]s describe node worker-1 --at 1h`

// command is one call of describe.
type command struct {
	env           *env.Env
	at            string
	labelSelector string
	allNamespaces bool
	settings      kubectldescribe.DescriberSettings
}

// NewCommand makes the command describe.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e, settings: kubectldescribe.DescriberSettings{ShowEvents: true, ChunkSize: cmdutil.DefaultChunkSize}}
	cmd := &cobra.Command{
		Use:     "describe (TYPE[.VERSION][.GROUP][,TYPE…] [NAME…] | TYPE/NAME…) [--at instant]",
		Short:   "Show details of objects at an instant, with their Events",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	flags := cmd.Flags()
	past.AtFlag(flags, &c.at)
	flags.StringVarP(&c.labelSelector, "selector", "l", "", "selector by labels, with =, ==, !=, in and notin")
	flags.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "the objects of all namespaces")
	flags.BoolVar(&c.settings.ShowEvents, "show-events", true, "show Events; without the flag, describe shows them only for one object")
	return cmd
}

func (c *command) run(cmd *cobra.Command, args []string) error {
	instant, err := c.env.Instant(c.at)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return env.Mistake(cmd, errors.New("name a type of resource to describe, such as pods"))
	}
	namespace, err := c.env.Namespace(c.allNamespaces)
	if err != nil {
		return err
	}
	rec, err := c.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	return errors.Join(c.answer(cmd, rec, args, instant, namespace), rec.Close())
}

func (c *command) answer(cmd *cobra.Command, rec *env.Record, args []string, instant history.Instant, namespace string) error {
	ctx := cmd.Context()
	v, targets, err := view.Look(ctx, c.env, rec, instant, args, namespace)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if !target.Resource.Served {
			return fmt.Errorf("the server's discovery did not have %s at that instant, so describe cannot show them: use %q", target.Resource, c.env.Command+" get")
		}
	}
	c.env.Note(past.Inexact("the description shows", v.Point))
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))                                        // Libraries log odd requests; kubectl gets an answer to them.
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{rec.Record}}) // It has no log: the command prints the errors.
	if err != nil {
		return err
	}
	defer handler.Close()
	clients := &kubectl.Clients{Namespace: namespace, Catalog: v.Catalog, Warn: c.env.Note, Transport: &transport{
		ctx: ctx, handler: handler, root: apiserver.Path(rec.Cluster().UID, v.Point.Seq), view: v, targets: targets,
	}}
	return c.options(ctx, clients, args, cmd.Flags().Changed("show-events")).Run()
}

// options returns the options of kubectl's command.
func (c *command) options(ctx context.Context, clients *kubectl.Clients, args []string, eventsAsked bool) *kubectlcommand.DescribeOptions {
	factory := cmdutil.NewFactory(clients)
	namespace, _, _ := clients.ToRawKubeConfigLoader().Namespace() // It reads no file, so it cannot fail.
	return &kubectlcommand.DescribeOptions{
		Selector: c.labelSelector, Namespace: namespace, AllNamespaces: c.allNamespaces,
		Describer: func(mapping *meta.RESTMapping) (kubectldescribe.ResourceDescriber, error) {
			return kubectldescribe.DescriberFn(clients, mapping)
		},
		NewBuilder: factory.NewBuilder, BuilderArgs: args, FilenameOptions: &kubectlresource.FilenameOptions{},
		ShowEventsExplicitlySet: eventsAsked, DescriberSettings: &c.settings,
		IOStreams: genericiooptions.IOStreams{
			In: c.env.IOStreams.In, Out: kubectl.Harmless(kubectl.UntilDone(ctx, c.env.IOStreams.Out)), ErrOut: kubectl.HarmlessMessages(c.env.IOStreams.ErrOut),
		},
	}
}
