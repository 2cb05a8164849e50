package env

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// Env holds the settings and streams of a command.
type Env struct {
	IOStreams genericiooptions.IOStreams
	// Config has kubectl's flags for kubeconfig, context and namespace.
	Config *genericclioptions.ConfigFlags
	// Load fills in Settings before a command runs.
	Settings

	Now func() time.Time
	// Quit ends the command. Env calls it if the user closes the pager.
	Quit func()

	Command    string // the name by which the user called the program, for examples and advice
	environ    []string
	log        *slog.Logger
	noted      map[string]bool // the printed notes
	pager      *terminal.Pager // nil without a pager
	progressTo io.Writer
}

// New returns the Env of a command line. Load reads its settings.
func New(streams genericiooptions.IOStreams, environ []string) *Env {
	return &Env{
		IOStreams: streams, Config: kubeFlags(), Now: time.Now, Quit: func() {}, Command: ProgramName, environ: environ, noted: map[string]bool{},
		log: newLog(streams.ErrOut), progressTo: streams.ErrOut,
	}
}

// newLog returns a logger for warnings and errors of the embedded PostgreSQL and of the record. Other messages would disturb
// the answer.
func newLog(out io.Writer) *slog.Logger { return telemetry.NewLogger(out, "text", slog.LevelWarn) }

// Log returns the logger for problems while a command runs.
func (e *Env) Log() *slog.Logger { return e.log }

// Environ returns the environment of the program.
func (e *Env) Environ() []string { return slices.Clone(e.environ) }

// Variable returns an environment variable; "" if it is not set.
func (e *Env) Variable(name string) string { return lookup(e.environ, name) }

// kubeFlags returns the flags of kubectl that replay uses. --cluster names a cluster of the record, so it is not kubectl's
// flag.
func kubeFlags() *genericclioptions.ConfigFlags {
	all := genericclioptions.NewConfigFlags(true)
	return &genericclioptions.ConfigFlags{KubeConfig: all.KubeConfig, Context: all.Context, Namespace: all.Namespace}
}

// Load reads the settings after the flags of a command are parsed.
func (e *Env) Load(cmd *cobra.Command) (err error) {
	e.Settings, err = loadSettings(cmd.Flags(), e.environ)
	if e.exposed != "" {
		e.Note(e.exposed + ": " + config.ExposedAdvice)
	}
	if err == nil {
		e.page(cmd)
	}
	return err
}

// Silent returns an Env for completion: with the settings of a command line, and without output.
func (e *Env) Silent(cmd *cobra.Command) (*Env, error) {
	streams := genericiooptions.IOStreams{In: e.IOStreams.In, Out: io.Discard, ErrOut: io.Discard}
	silent := New(streams, e.environ)
	silent.Config, silent.Command, silent.Now = e.Config, e.Command, e.Now
	return silent, silent.Load(cmd)
}

// Open opens the record that the settings name.
func (e *Env) Open(ctx context.Context) (*Record, error) { return e.place(e.log).open(ctx) }

// OpenAll opens the record of every cluster of the database, or only of the cluster that the settings name.
func (e *Env) OpenAll(ctx context.Context) (*Records, error) { return e.place(e.log).openAll(ctx) }

// Runs reports whether Open can answer without starting an embedded PostgreSQL.
func (e *Env) Runs() (bool, error) { return database.Runs(e.place(e.log).config) }

// Clusters lists the clusters of the database that the settings name.
func (e *Env) Clusters(ctx context.Context) ([]history.Cluster, error) {
	return e.place(e.log).clusters(ctx)
}

// NoteNamespace prints a note if the record never held the requested namespace.
func (e *Env) NoteNamespace(ctx context.Context, rec *Record, namespace string) error {
	text, err := known.UnknownNamespace(ctx, rec.Record, namespace)
	e.Note(text)
	return err
}

// Namespace returns the value of --namespace, or the namespace of the kubeconfig's context, or default; "" for all. It reads
// the kubeconfig only if it needs it, so a broken kubeconfig disturbs no other command.
func (e *Env) Namespace(all bool) (string, error) {
	if all {
		return "", nil
	}
	if named := *e.Config.Namespace; named != "" {
		return named, nil
	}
	name, _, err := e.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the current context: %w; name one with -n, or use -A", err)
	}
	return name, nil
}

// Note prints a note on standard error, each text once.
func (e *Env) Note(text string) {
	if text = e.InZone(text); e.Quiet || e.noted[text] || text == "" {
		return
	}
	e.noted[text] = true
	line := e.ErrStyle().Note("Note:") + " " + render.Short(render.Line(strings.TrimSpace(text)))
	fmt.Fprintln(e.IOStreams.ErrOut, terminal.Wrap(line, e.Width(), len("Note: ")))
}

// Progress returns a progress display on standard error for long work. With --quiet, it prints nothing.
func (e *Env) Progress(title string) *output.Progress {
	return output.NewProgress(e.progressTo, title, e.Quiet)
}

// TimeOf returns the time of an instant before its resources are known. For a resource version, it returns now, and known is
// false.
func (e *Env) TimeOf(ctx context.Context, rec *Record, at history.Instant) (t time.Time, known bool, err error) {
	if at.RV() != "" || at.IsNow() {
		return e.Now(), at.IsNow(), nil
	}
	point, err := rec.Resolve(ctx, at, history.Scope{})
	return point.Time, true, err
}
