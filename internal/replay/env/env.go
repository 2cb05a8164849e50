package env

import (
	"context"
	"errors"
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
	"github.com/kuberewind/kuberewind/internal/mistyped"
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

// Record is an open record. Close closes the database, and ends the embedded one if it was started for this.
type Record struct {
	*history.Record
	database *database.Database
}

// Close closes the record.
func (r *Record) Close() error {
	r.Record.Close()
	return r.database.Close()
}

// Open opens the record that the settings name.
func (e *Env) Open(ctx context.Context) (*Record, error) {
	cfg := config.Config{Database: e.Database, DataDir: e.DataDir}
	database, err := database.OpenRecord(ctx, cfg, e.log)
	if err != nil {
		return nil, err
	}
	rec, err := history.Open(ctx, database.URL(), history.Options{Cluster: e.Cluster, Log: e.log})
	if err != nil {
		return nil, errors.Join(e.explainOpen(e.suggestCluster(ctx, database, err)), database.Close())
	}
	return &Record{Record: rec, database: database}, nil
}

// Records are the open records of one database, one for each cluster. Close closes it.
type Records struct {
	All      []*history.Record
	database *database.Database
}

// Close closes the records.
func (r *Records) Close() error {
	for _, record := range r.All {
		record.Close()
	}
	return r.database.Close()
}

// OpenAll opens the record of every cluster of the database, or that of the cluster which the settings name.
func (e *Env) OpenAll(ctx context.Context) (*Records, error) {
	database, err := database.OpenRecord(ctx, config.Config{Database: e.Database, DataDir: e.DataDir}, e.log)
	if err != nil {
		return nil, err
	}
	records := &Records{database: database}
	names, err := e.clusterNames(ctx, database)
	for _, name := range names {
		var record *history.Record
		if record, err = history.Open(ctx, database.URL(), history.Options{Cluster: name, Log: e.log}); err != nil {
			break
		}
		records.All = append(records.All, record)
	}
	if err != nil {
		return nil, errors.Join(e.explainOpen(e.suggestCluster(ctx, database, err)), records.Close())
	}
	return records, nil
}

// clusterNames are those of the clusters that are opened. There is one at least, so that an empty record is an error.
func (e *Env) clusterNames(ctx context.Context, database *database.Database) (names []string, err error) {
	if e.Cluster != "" {
		return []string{e.Cluster}, nil
	}
	all, err := history.Clusters(ctx, database.URL())
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names, nil
}

// Runs reports whether Open can answer without starting an embedded PostgreSQL.
func (e *Env) Runs() (bool, error) {
	return database.Runs(config.Config{Database: e.Database, DataDir: e.DataDir})
}

// Clusters lists the clusters of the database that the settings name.
func (e *Env) Clusters(ctx context.Context) (_ []history.Cluster, err error) {
	database, err := database.OpenRecord(ctx, config.Config{Database: e.Database, DataDir: e.DataDir}, e.log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return history.Clusters(ctx, database.URL())
}

// suggestCluster adds to the error of an unknown cluster which one was perhaps meant.
func (e *Env) suggestCluster(ctx context.Context, database *database.Database, err error) error {
	if !errors.Is(err, history.ErrNoCluster) {
		return err
	}
	all, _ := history.Clusters(ctx, database.URL()) // the error stands without them
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	if like := mistyped.Suggest(e.Cluster, names); like != "" {
		return fmt.Errorf("%w; did you mean %q?", err, like)
	}
	return err
}

// NoteNamespace notes that the record never held the namespace that was asked for.
func (e *Env) NoteNamespace(ctx context.Context, rec *Record, namespace string) error {
	text, err := known.UnknownNamespace(ctx, rec.Record, namespace)
	e.Note(text)
	return err
}

// explainOpen adds which database it was.
func (e *Env) explainOpen(err error) error {
	return fmt.Errorf("database %s: %w", config.MaskURL(e.Database), config.Plain(err))
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
		return "", fmt.Errorf("the namespace of the current context: %w; name one with -n, or use -A", err)
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
