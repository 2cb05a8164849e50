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
	"github.com/kuberewind/kuberewind/internal/replay/terminal"
	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// Env is what every command gets.
type Env struct {
	IOStreams genericiooptions.IOStreams
	// Config has kubectl's flags for kubeconfig, context and namespace.
	Config *genericclioptions.ConfigFlags
	// Settings are filled in before a command runs.
	Settings

	Now func() time.Time
	// Quit ends the command. It is called if the person ends the pager.
	Quit func()

	Command    string // how the program was called, for examples and advice
	environ    []string
	log        *slog.Logger
	noted      map[string]bool // the notes that were printed
	pager      *terminal.Pager // nil if there is none
	progressTo io.Writer
}

// New makes what the commands share. Load reads the settings into it.
func New(streams genericiooptions.IOStreams, environ []string) *Env {
	return &Env{
		IOStreams: streams, Config: kubeFlags(), Now: time.Now, Quit: func() {}, Command: ProgramName, environ: environ, noted: map[string]bool{},
		log: newLog(streams.ErrOut), progressTo: streams.ErrOut,
	}
}

// newLog logs errors of the embedded PostgreSQL and of the record; the rest is noise beside an answer.
func newLog(out io.Writer) *slog.Logger { return telemetry.NewLogger(out, "text", slog.LevelWarn) }

// Log is for what is wrong while a command runs.
func (e *Env) Log() *slog.Logger { return e.log }

// Environ is the environment of the program.
func (e *Env) Environ() []string { return slices.Clone(e.environ) }

// Variable is a variable of the environment; "" if it is not set.
func (e *Env) Variable(name string) string { return lookup(e.environ, name) }

// kubeFlags are those of kubectl that mean something here. The name of the cluster is that of the record, so --cluster is not kubectl's.
func kubeFlags() *genericclioptions.ConfigFlags {
	all := genericclioptions.NewConfigFlags(true)
	return &genericclioptions.ConfigFlags{KubeConfig: all.KubeConfig, Context: all.Context, Namespace: all.Namespace}
}

// Load reads the settings, once the flags of a command are parsed.
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

// Silent is for completion: it has the settings of a command line, and says nothing.
func (e *Env) Silent(cmd *cobra.Command) (*Env, error) {
	streams := genericiooptions.IOStreams{In: e.IOStreams.In, Out: io.Discard, ErrOut: io.Discard}
	silent := New(streams, e.environ)
	silent.Config, silent.Command, silent.Now = e.Config, e.Command, e.Now
	return silent, silent.Load(cmd)
}

// Open opens the record that the settings name.
func (e *Env) Open(ctx context.Context) (*Record, error) { return e.place(e.log).open(ctx) }

// OpenAll opens the record of every cluster of the database, or that of the cluster which the settings name.
func (e *Env) OpenAll(ctx context.Context) (*Records, error) { return e.place(e.log).openAll(ctx) }

// Runs reports whether Open can answer without starting an embedded PostgreSQL.
func (e *Env) Runs() (bool, error) { return database.Runs(e.place(e.log).config) }

// Clusters lists the clusters of the database that the settings name.
func (e *Env) Clusters(ctx context.Context) ([]history.Cluster, error) {
	return e.place(e.log).clusters(ctx)
}

// NoteNamespace notes that the record never held the namespace that was asked for.
func (e *Env) NoteNamespace(ctx context.Context, rec *Record, namespace string) error {
	text, err := known.UnknownNamespace(ctx, rec.Record, namespace)
	e.Note(text)
	return err
}

// Namespace is that of --namespace, else of the kubeconfig's context, else default; "" for all. A kubeconfig that cannot be read is in
// nobody's way who does not need it.
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

// Note prints one line on standard error, once.
func (e *Env) Note(text string) {
	if text = e.InZone(text); e.Quiet || e.noted[text] || text == "" {
		return
	}
	e.noted[text] = true
	line := e.ErrStyle().Note("Note:") + " " + render.Short(render.Line(strings.TrimSpace(text)))
	fmt.Fprintln(e.IOStreams.ErrOut, terminal.Wrap(line, e.Width(), len("Note: ")))
}

// Progress tells on standard error how far long work is, unless the settings say quiet.
func (e *Env) Progress(title string) *output.Progress {
	return output.NewProgress(e.progressTo, title, e.Quiet)
}

// TimeOf is the time of an instant, as far as it is known before its resources are. The time of a resource version is then that
// of the end of the record.
func (e *Env) TimeOf(ctx context.Context, rec *Record, at history.Instant) (t time.Time, known bool, err error) {
	if at.RV() != "" || at.IsNow() {
		return e.Now(), at.IsNow(), nil
	}
	point, err := rec.Resolve(ctx, at, history.Scope{})
	return point.Time, true, err
}
