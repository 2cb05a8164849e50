package coverage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

const coverageLong = `Show which stretches of the record are complete, where versions may be missing, and why.

The first line says whether the record is complete, and where it ends if no recorder runs. Then coverage shows for each resource:
  - the stretches in which the record holds every version that the server
    served
  - the gaps between them, with their cause and the result of the next list
  - the stretches that the recorder's configuration excluded
Then it shows the pauses, in which no recorder ran. Without a gap, the recorder caught up on the changes of a pause; their times are estimates. Versions
before a resource's first list do not count as missing.

-o json prints one object: cluster, from, to, complete, resources (group, resource, scope, complete, stretches: from, to, fromRV, toRV, complete,
live, cause, detail, outcome, appeared, changed, vanished, unchanged), pauses (from, to, afterSeq, recorder). A stretch without "to" is still open.

If you name a type that is not in the record, the first line says why: the recorder's settings exclude it, or the recorder never saw an object of it.

If versions are missing, the exit code is still 0. With --fail-if-incomplete, it is 1.`

const coverageExample = `  # Is last night complete?
  %[1]s coverage --since 2026-01-30T22:00:00Z \
    --until 2026-01-31T06:00:00Z --fail-if-incomplete

  # Only the gaps since yesterday
  %[1]s coverage --since yesterday --incomplete

  # All details about two resources
  %[1]s coverage pods,events -o wide`

// coverageCommand is one call of coverage.
type coverageCommand struct {
	env *env.Env

	since, until, output string
	failIncomplete       bool
	incomplete           bool // print only stretches with missing versions
}

// NewCommand makes the command coverage.
func NewCommand(e *env.Env) *cobra.Command {
	c := &coverageCommand{env: e}
	cmd := &cobra.Command{
		Use:     "coverage [TYPE[,TYPE…]]",
		Short:   "Show where the record is complete, and where not and why",
		Long:    coverageLong,
		Example: fmt.Sprintf(coverageExample, e.Command),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	flags := cmd.Flags()
	env.InstantVar(flags, &c.since, "since", "", "only stretches after an instant (default: the beginning)")
	env.InstantVar(flags, &c.until, "until", "", "only stretches before an instant (default: the end)")
	flags.BoolVar(&c.incomplete, "incomplete", false, "list only stretches in which versions may be missing")
	flags.BoolVar(&c.failIncomplete, "fail-if-incomplete", false, "exit with 1 if versions may be missing")
	flags.StringVarP(&c.output, "output", "o", output.Text, "text, wide or json")
	return cmd
}

func (c *coverageCommand) run(cmd *cobra.Command, args []string) error {
	if !slices.Contains([]string{output.Text, output.Wide, output.JSON}, c.output) {
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, wide, json", c.output))
	}
	rec, err := c.env.Open(cmd.Context())
	if err != nil {
		return err
	}
	report, err := c.report(cmd.Context(), rec, args)
	if err == nil {
		verdict := report.verdict(c.env.Zone())
		if c.incomplete {
			report.onlyIncomplete()
		}
		err = c.print(report, verdict)
	}
	if err = errors.Join(err, rec.Close()); err == nil && !report.Complete && c.failIncomplete {
		return &env.ExitError{Code: 1}
	}
	return err
}

// Report is the result of coverage. Its JSON form is public: the help of coverage documents it.
type Report struct {
	Cluster   string             `json:"cluster"`
	From      time.Time          `json:"from,omitzero"`
	To        time.Time          `json:"to,omitzero"`
	Complete  bool               `json:"complete"`
	Resources []resourceCoverage `json:"resources"`
	Pauses    []pauseCoverage    `json:"pauses"`
}

type resourceCoverage struct {
	Group     string    `json:"group"`
	Resource  string    `json:"resource"`
	Scope     string    `json:"scope"`
	Complete  bool      `json:"complete"`
	Stretches []Stretch `json:"stretches"`

	unrecorded bool // the arguments name it, and no object of it was ever recorded
}

// Stretch is a time in the record of one resource, and whether the record is complete there.
type Stretch struct {
	From      time.Time     `json:"from,omitzero"`
	To        time.Time     `json:"to,omitzero"`
	FromRV    string        `json:"fromRV,omitempty"`
	ToRV      string        `json:"toRV,omitempty"`
	Complete  bool          `json:"complete"`
	Live      bool          `json:"live"`
	Cause     delta.Cause   `json:"cause,omitempty"`
	Detail    string        `json:"detail,omitempty"`
	Outcome   delta.Outcome `json:"outcome,omitempty"`
	Appeared  int64         `json:"appeared,omitempty"`
	Changed   int64         `json:"changed,omitempty"`
	Vanished  int64         `json:"vanished,omitempty"`
	Unchanged int64         `json:"unchanged,omitempty"`

	missing bool // versions in the requested time may be missing
	after   bool // it is after the end of the record
	isGap   bool // a gap of the record caused it, not the configuration
}

// onlyIncomplete removes the stretches without missing versions, and the resources that then have none.
func (r *Report) onlyIncomplete() {
	for i := range r.Resources {
		c := &r.Resources[i]
		c.Stretches = slices.DeleteFunc(c.Stretches, func(s Stretch) bool { return !s.missing })
	}
	r.Resources = slices.DeleteFunc(r.Resources, func(c resourceCoverage) bool { return len(c.Stretches) == 0 })
}

type pauseCoverage struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	AfterSeq int64     `json:"afterSeq"`
	Recorder string    `json:"recorder"`
}

// causeStopped is a cause of the view coverage, which no gap has: no recorder was running.
const causeStopped delta.Cause = "stopped"

func (c *coverageCommand) report(ctx context.Context, rec *env.Record, args []string) (*Report, error) {
	from, to, err := c.window(ctx, rec)
	if err != nil {
		return nil, err
	}
	wanted, err := c.wanted(ctx, rec, to, args)
	if err != nil {
		return nil, err
	}
	stretches, err := rec.Completeness().Coverage(ctx, history.Scope{})
	if err != nil {
		return nil, err
	}
	pauses, err := rec.Completeness().Pauses(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Cluster: rec.Cluster().Name, From: from, To: to, Complete: true, Resources: []resourceCoverage{}, Pauses: []pauseCoverage{}}
	for i := range stretches {
		s := &stretches[i]
		if _, named := wanted[schema.GroupResource{Group: s.Group, Resource: s.Resource}]; wanted != nil && !named || !meets(s.From, s.To, from, to) {
			continue
		}
		r.add(s)
	}
	r.finish()
	r.addUnrecorded(wanted)
	for _, p := range pauses {
		if meets(p.From, p.To, from, to) {
			r.Pauses = append(r.Pauses, pauseCoverage{From: p.From, To: p.To, AfterSeq: p.AfterSeq, Recorder: p.Recorder})
		}
	}
	return r, nil
}

// window returns the times of --since and --until, zero for a flag that is not set.
func (c *coverageCommand) window(ctx context.Context, rec *env.Record) (from, to time.Time, err error) {
	if from, err = c.instant(ctx, rec, "--since", c.since); err != nil {
		return from, to, err
	}
	if to, err = c.instant(ctx, rec, "--until", c.until); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		return from, to, fmt.Errorf("--since %s is after --until %s", c.since, c.until)
	}
	return from, to, nil
}

func (c *coverageCommand) instant(ctx context.Context, rec *env.Record, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := c.env.Instant(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", flag, err)
	}
	point, err := rec.Resolve(ctx, at, history.Scope{})
	var before *history.BeforeRecordError
	if errors.As(err, &before) && flag == "--since" {
		c.env.Note(fmt.Sprintf("the record begins at %s, after %s", before.Begin(), at))
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", flag, err)
	}
	return point.Time, nil
}

// wanted returns the resources that the arguments name, and whether the record holds them. Without arguments, it returns
// nil, for all resources.
func (c *coverageCommand) wanted(ctx context.Context, rec *env.Record, to time.Time, args []string) (map[schema.GroupResource]bool, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if to.IsZero() {
		to = c.env.Now()
	}
	catalog, err := resource.ReadCatalog(ctx, rec.Record, to, c.env.Note)
	if err != nil {
		return nil, err
	}
	wanted := map[schema.GroupResource]bool{}
	for word := range strings.SplitSeq(strings.Join(args, ","), ",") {
		found, err := catalog.Targets([]string{word})
		var unknown *resource.UnknownResourceError
		switch {
		case errors.As(err, &unknown) && !unknown.Served.Empty():
			wanted[unknown.Served] = false
		case err != nil:
			return nil, err
		}
		for _, t := range found {
			if len(t.Names) > 0 {
				return nil, fmt.Errorf("%q: coverage takes resources, not objects", word)
			}
			wanted[t.Resource.GroupResource()] = true
		}
	}
	return wanted, nil
}

// addUnrecorded adds the named resources that the record does not hold. Then the report is not complete.
func (r *Report) addUnrecorded(wanted map[schema.GroupResource]bool) {
	for gr, recorded := range wanted {
		if recorded {
			continue
		}
		r.Complete = false
		if !slices.ContainsFunc(r.Resources, func(c resourceCoverage) bool { return c.Group == gr.Group && c.Resource == gr.Resource }) {
			r.Resources = append(r.Resources, resourceCoverage{Group: gr.Group, Resource: gr.Resource, Stretches: []Stretch{}})
		}
		for i := range r.Resources {
			c := &r.Resources[i]
			c.unrecorded = c.unrecorded || c.Group == gr.Group && c.Resource == gr.Resource
		}
	}
	slices.SortFunc(r.Resources, byName)
}

func byName(a, b resourceCoverage) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Scope, b.Scope))
}

// meets reports whether two stretches overlap. A zero time is no bound.
func meets(from, to, since, until time.Time) bool {
	return (to.IsZero() || since.IsZero() || to.After(since)) && (from.IsZero() || until.IsZero() || !from.After(until))
}

func (r *Report) add(s *history.Coverage) {
	made := Stretch{
		From: s.From, To: s.To, FromRV: s.FromRV, ToRV: s.ToRV, Complete: s.Complete, Live: s.Live, Cause: s.Cause, Detail: s.Detail,
		Outcome: s.Outcome, Appeared: s.Appeared, Changed: s.Changed, Vanished: s.Vanished, Unchanged: s.Unchanged, isGap: s.Gap != 0,
	}
	i := slices.IndexFunc(r.Resources, func(c resourceCoverage) bool {
		return c.Group == s.Group && c.Resource == s.Resource && c.Scope == s.Scope
	})
	if i < 0 {
		i = len(r.Resources)
		r.Resources = append(r.Resources, resourceCoverage{Group: s.Group, Resource: s.Resource, Scope: s.Scope, Complete: true})
	}
	r.Resources[i].Stretches = append(r.Resources[i].Stretches, made)
}

// missed reports whether versions are missing in a stretch. A first list that has come ends the time before it, which is
// no gap. The time that the configuration excludes is no gap. The time after the end of the record is one only if the user
// requested it.
func (r *Report) missed(s *Stretch) bool {
	switch {
	case s.Complete:
		return false
	case s.Cause == delta.CauseFirstList:
		return s.To.IsZero()
	case s.Cause == delta.CauseConfiguration:
		return s.isGap
	case s.Cause == causeStopped:
		return !r.To.IsZero() && r.To.After(s.From)
	}
	return true
}

func (r *Report) finish() {
	slices.SortFunc(r.Resources, byName)
	for i := range r.Resources {
		c := &r.Resources[i]
		slices.SortStableFunc(c.Stretches, func(a, b Stretch) int { return a.From.Compare(b.From) })
		whole := false
		for n := range c.Stretches {
			s := &c.Stretches[n]
			s.missing = r.missed(s)
			s.after = s.Cause == causeStopped && !s.missing
			r.Complete = r.Complete && !s.missing
			c.Complete = c.Complete && !s.missing
			whole = whole || s.Complete
		}
		c.Complete = c.Complete && whole
	}
}
