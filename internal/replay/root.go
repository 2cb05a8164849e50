package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/help"
	blamecommand "github.com/kuberewind/kuberewind/internal/replay/blame"
	"github.com/kuberewind/kuberewind/internal/replay/changelog"
	"github.com/kuberewind/kuberewind/internal/replay/completion"
	"github.com/kuberewind/kuberewind/internal/replay/coverage"
	"github.com/kuberewind/kuberewind/internal/replay/describe"
	"github.com/kuberewind/kuberewind/internal/replay/diff"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/exec"
	"github.com/kuberewind/kuberewind/internal/replay/get"
	"github.com/kuberewind/kuberewind/internal/replay/kubeconfig"
	"github.com/kuberewind/kuberewind/internal/replay/open"
	servecommand "github.com/kuberewind/kuberewind/internal/replay/serve"
	"github.com/kuberewind/kuberewind/internal/replay/session"
	"github.com/kuberewind/kuberewind/internal/replay/shell"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
	"github.com/kuberewind/kuberewind/internal/replay/snapshot"
	storycommand "github.com/kuberewind/kuberewind/internal/replay/story"
	"github.com/kuberewind/kuberewind/internal/replay/verify"
	"github.com/kuberewind/kuberewind/internal/terminal"
	"github.com/kuberewind/kuberewind/internal/version"
)

const longHelp = `replay shows a Kubernetes cluster as it was at any instant, from the record that recorder wrote.
It reads only the record. Only "verify --against-cluster" asks the API server.
"exec --at 10m -- k9s" runs k9s, or any other Kubernetes client, on the cluster as it was ten minutes ago. "shell", "serve" and "kubeconfig" do the same
for a shell, for many clients and for your own tools.

An instant (--at, --from, --to, --since, --until, --around) is one of
  18:45, yesterday 14:05             a time, in the local zone or in UTC (--utc)
  2026-01-31, 2026-01-31 18:45       a date, or a date and a time
  2026-01-31T12:00:00Z, 1769860800   a time, RFC 3339 or Unix seconds
  10m, -10m, 2d12h ago               a duration before now
  now                                the end of the record
  seq:1234                           after the delta of this number
  rv:5678                            after this resource version
The answer includes the changes that happened at that instant.

Settings are flags, variables (REPLAY_NO_PAGER for --no-pager, and so on) or keys of the file
kuberewind/replay.yaml, in this order of precedence. If none of them names the record, replay reads RECORDER_DATABASE, RECORDER_DATA_DIR and the recorder's file.

exec and shell end with the exit code of the program that they run. The other commands use these codes.

Exit codes:
  0          success; diff: no difference; log --follow, serve: ended by Ctrl-C
  1          failure, or an incomplete answer; diff: something is different
  2          diff: failure
  3          verify --head: the commit was pruned, so it cannot be checked
  130, 143   ended by a signal
  141        the program that reads the output ended first`

const rootExample = `  # What ran in this namespace ten minutes ago
  %[1]s get pods -n shop --at 10m

  # What was there when the alert fired, with the columns that kubectl prints
  %[1]s get deploy,rs,pods -n shop --at 2026-01-31T03:12:00Z -o wide

  # An object as it was, as YAML
  %[1]s get cm/settings -n shop --at 2026-01-31T03:12:00Z -o yaml

  # The whole cluster, one file an object
  %[1]s snapshot --at 1h -o ./cluster`

// newRootCommand returns the command for name (argv[0]). Files named kubectl-NAME are plugins of kubectl.
func newRootCommand(name string, e *env.Env) *cobra.Command {
	streams := e.IOStreams
	root := &cobra.Command{
		Use:           env.ProgramName,
		Short:         "Show a Kubernetes cluster as it was at any instant",
		Long:          longHelp,
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return e.Load(cmd)
		},
	}
	e.Command = env.ProgramName
	if plugin, ok := strings.CutPrefix(programName(name), "kubectl-"); ok {
		// Cobra then prints "kubectl replay" as the name of the command.
		root.Use = plugin
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + plugin}
		e.Command = "kubectl " + plugin
	}
	root.Example = fmt.Sprintf(rootExample, e.Command)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	help.Fit(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return env.MistakenFlag(cmd, err) })
	env.SettingFlags(root.PersistentFlags())
	e.Config.AddFlags(root.PersistentFlags())
	for _, construct := range commands() {
		root.AddCommand(construct(e))
	}
	completion.Register(root, e)
	root.InitDefaultCompletionCmd()
	if shells, _, err := root.Find([]string{"completion"}); err == nil {
		shells.Args, shells.RunE = onlyCommands, root.RunE
	}
	return root
}

func programName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// commands are the subcommands, in the order of the help.
func commands() []func(*env.Env) *cobra.Command {
	return []func(*env.Env) *cobra.Command{
		get.NewCommand,
		describe.NewCommand,
		snapshot.NewCommand,
		changelog.NewCommand,
		storycommand.NewCommand,
		blamecommand.NewCommand,
		diff.NewCommand,
		coverage.NewCommand,
		verify.NewCommand,
		servecommand.NewCommand,
		kubeconfig.NewCommand,
		exec.NewCommand,
		shell.NewCommand,
		open.NewCommand,
		session.NewCommand,
		newVersionCommand,
	}
}

// Execute runs the program, and returns its exit code.
func Execute(ctx context.Context, name string, args []string, streams genericiooptions.IOStreams) int {
	if plugin, ok := strings.CutPrefix(programName(name), "kubectl_complete-"); ok {
		// kubectl runs the file of this name to complete a line that begins with its plugin.
		name, args = "kubectl-"+plugin, append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	e := env.New(streams, os.Environ())
	e.Quit = func() { end(errSeenEnough) }
	root := newRootCommand(name, e)
	completion.Prepare(root, args)
	root.SetArgs(args)
	err := run(ctx, root)
	early, written := e.Close()
	if early {
		return 0
	}
	return report(ctx, e, cmp.Or(err, written), streams.ErrOut)
}

// errSeenEnough ends a command after the user closed the pager.
var errSeenEnough = errors.New("the user closed the pager")

// run runs the command. After ctx ends, it waits at most endWithin.
func run(ctx context.Context, root *cobra.Command) error {
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// Running work ends by itself, unless the reader of its output does not read.
	grace := time.NewTimer(endWithin)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
		return context.Cause(ctx)
	}
}

// endWithin is the time for a command to end: an embedded PostgreSQL needs a moment to stop.
const endWithin = 15 * time.Second

// report prints the error, and returns the exit code.
func report(ctx context.Context, e *env.Env, err error, out io.Writer) int {
	var signal *signals.Signal
	var exit *env.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(context.Cause(ctx), &signal):
		return signal.Code
	case unread(err):
		return 141
	case errors.As(err, &exit):
		if exit.Err != nil {
			fmt.Fprint(out, formatError(e, exit.Err))
		}
		return exit.Code
	}
	fmt.Fprint(out, formatError(e, err))
	return 1
}

// formatError formats an error for a person: with the zone and the colours of the answer, in lines that fit the terminal.
func formatError(e *env.Env, err error) string {
	return terminal.Wrap(coloured(e.InZone(message(err)), e.ErrStyle()), e.Width(), len("error: "))
}

// unread reports whether the reader of the output, such as head, ended before the command.
func unread(err error) bool {
	var file *fs.PathError // not a connection
	return errors.As(err, &file) && errors.Is(file, syscall.EPIPE)
}

// longestCommand is the maximum length, in bytes, of a word for which commands are suggested: to compare longer words takes
// seconds.
const longestCommand = 100

// onlyCommands rejects arguments of the root command: each would be an unknown command.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // letters
	err := fmt.Errorf("unknown command %q", args[0])
	if len(args[0]) > longestCommand {
		return env.Mistake(cmd, err)
	}
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return env.Mistake(cmd, err)
}

func newVersionCommand(e *env.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.IOStreams.Out, version.String())
			return err
		},
	}
}
