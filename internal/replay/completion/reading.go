package completion

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// timeout is the maximum time of a completion. Most take a tenth of a second.
const timeout = 2 * time.Second

// limited ends ctx after timeout. It does not if ctx has a deadline, because that is the caller's decision.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, decided := ctx.Deadline(); decided {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// A reading is the open record, with the time range of a command line.
type reading struct {
	ctx  context.Context // A reading serves one completion.
	env  *env.Env
	cmd  *cobra.Command
	args []string
	rec  *env.Record

	lives  known.Lives // From and To bound the time range
	until  time.Time
	served *resource.Catalog // nil until catalog reads it
}

// read opens the record, calls ask, and closes the record.
func (c *completer) read(cmd *cobra.Command, args []string, ask func(*reading) (offer, error)) (found offer, err error) {
	ctx, cancel := limited(cmd.Context())
	defer cancel()
	silent, err := c.silent(cmd)
	if err != nil {
		return offer{}, err
	}
	rec, err := silent.Open(ctx)
	if err != nil {
		return offer{}, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	r := &reading{ctx: ctx, env: silent, cmd: cmd, args: args, rec: rec}
	if err := r.resolve(); err != nil {
		return offer{}, err
	}
	return ask(r)
}

var errNotRunning = errors.New("the embedded PostgreSQL does not run")

// silent returns an Env with the settings of the command line that prints nothing.
func (c *completer) silent(cmd *cobra.Command) (*env.Env, error) {
	silent, err := c.env.Silent(cmd)
	if err != nil {
		return nil, err
	}
	runs, err := silent.Runs()
	if err == nil && !runs {
		err = errNotRunning
	}
	return silent, err
}

// clusters completes --cluster. It opens no record: a database with several clusters needs a name for that.
func (c *completer) clusters(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := limited(cmd.Context())
	defer cancel()
	var names []string
	if silent, err := c.silent(cmd); err == nil {
		all, _ := silent.Clusters(ctx) // completion cannot print an error
		for _, each := range all {
			names = append(names, each.Name)
		}
	}
	return shown(offer{words: harmless(startingWith(names, typed), forPatterns)}, ""), cobra.ShellCompDirectiveNoFileComp
}

// resolve sets the time range. It treats a resource version, which belongs to one resource, as now.
func (r *reading) resolve() error {
	r.until = r.env.Now()
	from, to := r.typed("at", "from", "since", "around"), r.typed("at", "to", "until", "around")
	if from == "" && to == "" {
		return nil
	}
	if from == "" {
		from = to
	}
	first, err := r.point(from)
	if err != nil {
		return err
	}
	last, err := r.point(to)
	if err != nil || last.Seq == 0 || first.Seq == 0 {
		return err
	}
	if last.Seq < first.Seq {
		first, last = last, first
	}
	r.lives.From, r.lives.To, r.until = first.Seq, last.Seq, last.Time
	return nil
}

// typed returns the value of the first of these flags that is set.
func (r *reading) typed(names ...string) string {
	for _, name := range names {
		if f := r.cmd.Flags().Lookup(name); f != nil && f.Changed {
			return f.Value.String()
		}
	}
	return ""
}

// point resolves an instant; "" is now. For a resource version, Seq is 0.
func (r *reading) point(text string) (history.Point, error) {
	if text == "" {
		text = "now"
	}
	at, err := r.env.Instant(text)
	if err != nil || at.RV() != "" {
		return history.Point{}, err
	}
	return r.rec.Resolve(r.ctx, at, history.Scope{Streams: []int32{}})
}

// catalog returns the resources at the end of the time range.
func (r *reading) catalog() (c *resource.Catalog, err error) {
	if r.served == nil {
		r.served, err = resource.ReadCatalog(r.ctx, r.rec.Record, r.until, func(string) {})
	}
	return r.served, err
}

// namespace returns the namespace of the command line; "" for all.
func (r *reading) namespace() (string, error) {
	all := r.cmd.Flags().Lookup("all-namespaces")
	return r.env.Namespace(all != nil && all.Value.String() == "true")
}
