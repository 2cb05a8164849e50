package measure

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"
)

// A Quantity is something that is measured of every run.
type Quantity struct {
	Name string `json:"name"` // as comparisons call it, and as a table shows it
	Unit string `json:"unit"` // such as deltas/s, µs, bytes
}

// Values are what one run gave, by quantity. A way may lack some.
type Values map[string]float64

// A Way is one of several that do the same thing.
type Way struct {
	Name string
	// Factor is how much larger the input is than that of the smallest way, in an experiment about growth.
	Factor float64
	// Once has it run in the first round only: it takes long, and nothing has to hold of it.
	Once bool
	// Run does the thing once and says what it cost. Rounds count from 0; a warm-up is round -1. It prepares and cleans up by
	// itself, and excludes that from the measured values.
	Run func(ctx context.Context, round int) (Values, error)
}

// An Experiment compares ways.
type Experiment struct {
	Name       string // in a few words of lower case: names files too
	Title      string
	Data       string // what it is measured on
	Quantities []Quantity
	Ways       []Way // the first is ours, and the one that is run against itself where something has to hold
	Compare    []Comparison
	Grow       []Growth
	WarmUp     bool // whether each way is run once before it counts
	Rounds     int  // instead of those of the run, if not 0
}

// An Operation puts two medians into one number.
type Operation string

// The operations.
const (
	Ratio      Operation = "ratio"      // Of / To
	Difference Operation = "difference" // Of − To, in the quantity's unit
	Alone      Operation = "alone"      // Of, in the quantity's unit; there is no To
)

// A Comparison says what has to hold between two ways. Of AtLeast and AtMost one is set, or neither: then it is only reported.
type Comparison struct {
	Number   string    `json:"number"` // of the measure in the methodology's table
	What     string    `json:"what"`
	Quantity string    `json:"quantity"`
	Of       string    `json:"of"`
	To       string    `json:"to"`
	By       Operation `json:"by,omitempty"` // Ratio, if empty
	AtLeast  float64   `json:"atLeast,omitempty"`
	AtMost   float64   `json:"atMost,omitempty"`
	Aim      float64   `json:"aim,omitempty"` // the same way round; 0 is none
}

// A Growth says that a cost may grow with the factors of the ways that have one no faster than they do, and without a step.
type Growth struct {
	Number   string `json:"number"`
	What     string `json:"what"`
	Quantity string `json:"quantity"`
}

// A Run is one run of the suite.
type Run struct {
	Report *Report
	Origin Origin    // of what is measured
	Rounds int       // how often every way is run
	Log    io.Writer // progress
	Dir    string    // where databases and files may be put for a while
	// A recorder is under load for so long, by so many events a second.
	LoadFor  time.Duration
	LoadRate float64
	// Recording is the file of a real control plane's data to measure on beside what is generated; empty if there is none.
	Recording string
	// Record is the URL of a database whose record is asked instead of one that is made; empty if there is none.
	Record string
	// Keep keeps the report for a run that goes on after this one was killed. It is called after each round and each experiment, when the report is as an interrupted
	// run ends. It may be nil.
	Keep func() error

	goOn  bool     // results that the report has count: it is of a run that was interrupted
	names []string // of what was measured, or counts as measured
}

// Begin begins with what an origin is of.
func (r *Run) Begin(origin Origin) {
	r.Origin, r.names = origin, nil
	r.goOn = len(r.Report.Missing(origin.Measures)) > 0
}

// End notes that all of it is measured.
func (r *Run) End() { r.Report.complete(r.Origin.Measures, r.names) }

// Interrupt notes that not all of it could be measured. If something was measured again, the rest is of another time, and goes.
func (r *Run) Interrupt() {
	if len(r.names) == 0 {
		if !r.goOn { // The earlier results are complete.
			r.Report.Begun = nil
		}
		return
	}
	if !r.goOn {
		r.Report.keepOnly(r.Origin.Measures, r.names)
	}
	r.Report.reopen(r.Origin.Measures)
}

// has reports whether the report has a result already that counts: one that was judged, if it is to be.
func (r *Run) has(name string, rounds int, judged bool) bool {
	if !r.goOn || !slices.ContainsFunc(r.Report.Results, func(old *Result) bool {
		return old.Name == name && old.Rounds == rounds && (len(old.Judged) > 0 || !judged)
	}) {
		return false
	}
	r.Say("%s: is measured already", name)
	r.names = append(r.names, name)
	return true
}

// Say reports progress.
func (r *Run) Say(format string, args ...any) { fmt.Fprintf(r.Log, "bench: "+format+"\n", args...) }

// Do runs an experiment, and adds what came out to the report. It ends with the first error of a way. The values are in the
// report also if they cannot be judged.
func (r *Run) Do(ctx context.Context, e Experiment) error {
	e.Rounds = cmp.Or(e.Rounds, r.Rounds)
	if r.has(e.Name, e.Rounds, len(e.Compare)+len(e.Grow) > 0) {
		return nil
	}
	result := r.begun(&e)
	if e.WarmUp {
		for _, way := range e.Ways {
			if _, err := r.once(ctx, &e, way, -1); err != nil {
				return err
			}
		}
	}
	ways, into := e.Ways, result.Ways
	if result.Again != nil {
		// In turn with all others: what they suffer from, it suffers from.
		ways, into = append(slices.Clone(ways), e.Ways[0]), append(slices.Clone(into), result.Again)
	}
	if err := r.rounds(ctx, &e, result, ways, into); err != nil {
		return err
	}
	return r.add(result, e.Compare, e.Grow)
}

// begun gives the result that an experiment adds its rounds to: that of an interrupted run, if it is of the same version, or a new one.
func (r *Run) begun(e *Experiment) *Result {
	result := &Result{Name: e.Name, Title: e.Title, Data: e.Data, Rounds: e.Rounds, Quantities: e.Quantities, Origin: r.Origin}
	for _, way := range e.Ways {
		result.Ways = append(result.Ways, &Measured{Name: way.Name, Factor: way.Factor})
	}
	if e.bound() {
		result.Again = &Measured{Name: e.Ways[0].Name + " again"}
	}
	if old := r.Report.Begun; r.goOn && old != nil && old.Name == e.Name && old.Rounds == e.Rounds && old.Origin.Version == r.Origin.Version &&
		slices.EqualFunc(old.Ways, result.Ways, func(a, b *Measured) bool { return a.Name == b.Name }) && (old.Again == nil) == (result.Again == nil) {
		r.Say("%s: %d of %d rounds are measured already", e.Name, old.whole(), e.Rounds)
		return old
	}
	return result
}

// keep keeps what is to be there after a kill. That all of it is measured only [Run.End] says.
func (r *Run) keep() error {
	r.Interrupt()
	if r.Keep == nil {
		return nil
	}
	return r.Keep()
}

func (r *Run) add(result *Result, compare []Comparison, grow []Growth) error {
	result.Origin.Date = time.Now().UTC().Truncate(time.Second)
	r.Report.add(result)
	r.names = append(r.names, result.Name)
	if err := result.judge(compare, grow); err != nil {
		result.Judged = nil // It is to be measured again.
		return fmt.Errorf("%s: %w", result.Name, err)
	}
	return r.keep()
}

// DoOnce runs something that measures all ways of an experiment by itself. Each value is a look, and not a run. There are no
// rounds to compare one by one, and where something has to hold the noise floor is how far the looks at one way are apart.
func (r *Run) DoOnce(ctx context.Context, e Experiment, do func(context.Context) ([]*Measured, error)) error {
	if r.has(e.Name, 1, len(e.Compare) > 0) {
		return nil
	}
	r.Say("%s", e.Name)
	result := &Result{Name: e.Name, Title: e.Title, Data: e.Data, Rounds: 1, Quantities: e.Quantities, Origin: r.Origin}
	var err error
	if result.Ways, err = do(ctx); err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return r.add(result, e.Compare, nil)
}

// bound reports whether anything has to hold.
func (e *Experiment) bound() bool {
	return len(e.Grow) > 0 || slices.ContainsFunc(e.Compare, Comparison.bound)
}

func (c Comparison) bound() bool { return c.AtLeast != 0 || c.AtMost != 0 }

// rounds runs ways in turn, each round in the order that [turns] gives it, from the first round that a result has not whole,
// and keeps each. If it ends early, the result has whole rounds.
func (r *Run) rounds(ctx context.Context, e *Experiment, result *Result, ways []Way, into []*Measured) error {
	orders := turns(ways, e.Rounds)
	for round := result.whole(); round < e.Rounds; round++ {
		all := make([]Values, len(ways))
		for _, i := range orders[round] {
			var err error
			if all[i], err = r.once(ctx, e, ways[i], round); err != nil {
				return err
			}
		}
		for i, values := range all {
			into[i].Add(values)
		}
		r.Report.Begun = result
		if err := r.keep(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) once(ctx context.Context, e *Experiment, way Way, round int) (Values, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if round < 0 {
		r.Say("%s: %s, to warm up", e.Name, way.Name)
	} else {
		r.Say("%s: %s, round %d of %d", e.Name, way.Name, round+1, e.Rounds)
	}
	runtime.GC() // what came before is not charged
	values, err := way.Run(ctx, round)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", e.Name, way.Name, err)
	}
	for name, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s: %s: %s is no number", e.Name, way.Name, name)
		}
		if !e.has(name) {
			return nil, fmt.Errorf("%s: %s: %q is none of the quantities", e.Name, way.Name, name)
		}
	}
	return values, nil
}

func (e *Experiment) has(quantity string) bool {
	for _, q := range e.Quantities {
		if q.Name == quantity {
			return true
		}
	}
	return false
}
