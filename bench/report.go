package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is what was measured. Times depend on the machine; ratios within one report do not, much.
type Report struct {
	Settings       Settings         `json:"settings"`
	PostgreSQL     string           `json:"postgresql"`
	WritingSeconds float64          `json:"writingSeconds"` // that the sink took for all deltas, beside the other table
	Records        []*RecordResult  `json:"records"`
	Intervals      []IntervalResult `json:"intervals"` // on the smallest record
	Ratios         []Ratio          `json:"ratios"`
}

// A RecordResult is what was measured on one record.
type RecordResult struct {
	Deltas       int64   `json:"deltas"`
	Objects      int     `json:"objects"` // that a snapshot held
	Sizes        Sizes   `json:"bytes"`
	Rebuild      Cost    `json:"rebuild"`        // to an indexer.Snapshot, from checkpoint and tail
	Tail         []int64 `json:"tail"`           // deltas read for each of these
	NoCheckpoint Cost    `json:"noCheckpoint"`   // the same without checkpoints
	DistinctOn   [2]Cost `json:"distinctOn"`     // the same from full rows, by each spelling
	HeldBytes    int64   `json:"heldBytes"`      // heap that a snapshot takes
	PeakBytes    int64   `json:"peakBytes"`      // resident memory of a process that rebuilds, at most; 0 if unknown
	Versions     int     `json:"versions"`       // of the one object
	VersionsInGo Times   `json:"versionsMillis"` // all of them, through history
	ObjectAt     Times   `json:"objectAtMillis"` // kuberewind.object_at
	HistoryInSQL Times   `json:"historyMillis"`  // kuberewind.history, all versions
}

// An IntervalResult is what checkpoints at an interval cost and give.
type IntervalResult struct {
	Deltas      int64   `json:"deltas"`
	Checkpoints int     `json:"checkpoints"`
	Bytes       int64   `json:"bytes"` // of all of them
	Rebuild     Cost    `json:"rebuild"`
	Tail        []int64 `json:"tail"`
}

// perDelta is what the checkpoints take, spread over the deltas of their intervals.
func (r *IntervalResult) perDelta() float64 {
	return float64(r.Bytes) / float64(max(r.Checkpoints, 1)) / float64(r.Deltas)
}

// A Ratio is one that is required to hold.
type Ratio struct {
	What    string  `json:"what"`
	Value   float64 `json:"value"` // of the times on the clock
	OfCPU   float64 `json:"ofCPU"` // the same of CPU time, for judging Value
	AtMost  float64 `json:"atMost,omitempty"`
	AtLeast float64 `json:"atLeast,omitempty"`
	Holds   bool    `json:"holds"`
}

// distinctOn is the faster one.
func (r *RecordResult) distinctOn() Cost {
	if r.DistinctOn[1].Wall.median() < r.DistinctOn[0].Wall.median() {
		return r.DistinctOn[1]
	}
	return r.DistinctOn[0]
}

// judge compares the smallest record with the largest.
func (r *Report) judge() {
	small, large := r.Records[0], r.Records[len(r.Records)-1]
	r.Ratios = []Ratio{
		newRatio("rebuild: largest record to smallest", large.Rebuild, small.Rebuild, 1.3, 0),
		newRatio("smallest record: DISTINCT ON over full rows to rebuild", small.distinctOn(), small.Rebuild, 0, 3),
		newRatio("largest record: DISTINCT ON over full rows to rebuild", large.distinctOn(), large.Rebuild, 0, 8),
	}
}

func newRatio(what string, a, b Cost, atMost, atLeast float64) Ratio {
	q := Ratio{What: what, Value: over(a.Wall, b.Wall), OfCPU: over(a.CPU, b.CPU), AtMost: atMost, AtLeast: atLeast}
	q.Holds = atMost != 0 && q.Value <= atMost || atLeast != 0 && q.Value >= atLeast
	return q
}

func over(a, b Times) float64 { return float64(a.median()) / float64(max(b.median(), 1)) }

// holds reports whether everything was measured and every required ratio holds.
func (r *Report) holds() bool {
	return len(r.Ratios) > 0 && !slices.ContainsFunc(r.Ratios, func(q Ratio) bool { return !q.Holds })
}

func (r *Report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *Report) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	small, large := r.Records[0], r.Records[len(r.Records)-1]
	row := func(what string, cell func(*RecordResult) string, ratio float64) {
		fmt.Fprintf(w, "%s\t", what)
		for _, record := range r.Records {
			fmt.Fprintf(w, "%s\t", cell(record))
		}
		if ratio != 0 {
			fmt.Fprintf(w, "%.2f", ratio)
		}
		fmt.Fprintln(w, "\t")
	}
	times := func(what string, of func(*RecordResult) Times) {
		row(what, func(r *RecordResult) string { return millis(of(r).median()) }, over(of(large), of(small)))
	}
	costs := func(what string, of func(*RecordResult) Cost) {
		times(what+", ms", func(r *RecordResult) Times { return of(r).Wall })
		times("of CPU", func(r *RecordResult) Times { return of(r).CPU })
	}
	fmt.Fprintf(out, "%s live objects, PostgreSQL %s without fsync, everything in memory. Medians; compare within this run only.\n\n", thousands(int64(r.Settings.Live)), r.PostgreSQL)
	row("deltas", func(r *RecordResult) string { return thousands(r.Deltas) }, float64(large.Deltas)/float64(small.Deltas))
	costs("rebuild the cluster: checkpoint and tail", func(r *RecordResult) Cost { return r.Rebuild })
	row("deltas in the tail", func(r *RecordResult) string { return thousands(median(r.Tail)) }, 0)
	costs("rebuild without checkpoints", func(r *RecordResult) Cost { return r.NoCheckpoint })
	costs("DISTINCT ON over full rows", func(r *RecordResult) Cost { return r.DistinctOn[0] })
	costs("DISTINCT ON along the index", func(r *RecordResult) Cost { return r.DistinctOn[1] })
	row("DISTINCT ON (the faster) to rebuild", func(r *RecordResult) string {
		return fmt.Sprintf("%.1f×", over(r.distinctOn().Wall, r.Rebuild.Wall))
	}, 0)
	row("versions of one object", func(r *RecordResult) string { return thousands(int64(r.Versions)) }, 0)
	times("all of them through history, ms", func(r *RecordResult) Times { return r.VersionsInGo })
	times("all of them by history() in SQL, ms", func(r *RecordResult) Times { return r.HistoryInSQL })
	times("that object by object_at() in SQL, ms", func(r *RecordResult) Times { return r.ObjectAt })
	row("heap held, bytes a live object", func(r *RecordResult) string { return thousands(r.HeldBytes / int64(max(r.Objects, 1))) }, 0)
	row("peak memory of the process, bytes a live object", func(r *RecordResult) string { return thousands(r.PeakBytes / int64(max(r.Objects, 1))) }, 0)
	bytes := func(what string, of func(Sizes) int64) {
		row(what, func(r *RecordResult) string { return fmt.Sprintf("%.0f", float64(of(r.Sizes))/float64(r.Deltas)) }, 0)
	}
	bytes("disk, bytes a delta: deltas", func(s Sizes) int64 { return s.Deltas })
	bytes("lives, batches and others", func(s Sizes) int64 { return s.Other })
	bytes("checkpoints", func(s Sizes) int64 { return s.Checkpoints })
	bytes("full rows", func(s Sizes) int64 { return s.FullRows })
	if err := w.Flush(); err != nil {
		return err
	}
	return r.rest(out)
}

func (r *Report) rest(out io.Writer) error {
	fmt.Fprintf(out, "\nCheckpoints of the smallest record:\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "one every\tbytes a delta\tdeltas in the tail\trebuild, ms\tof CPU\t")
	for _, i := range r.Intervals {
		fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%s\t\n", thousands(i.Deltas), i.perDelta(), thousands(median(i.Tail)), millis(i.Rebuild.Wall.median()), millis(i.Rebuild.CPU.median()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nRequired:")
	for _, q := range r.Ratios {
		bound, verdict := fmt.Sprintf("at most %g", q.AtMost), "holds"
		if q.AtLeast != 0 {
			bound = fmt.Sprintf("at least %g", q.AtLeast)
		}
		if !q.Holds {
			verdict = "DOES NOT HOLD"
		}
		fmt.Fprintf(out, "  %s: %.2f, %s: %s (of CPU: %.2f)\n", q.What, q.Value, bound, verdict, q.OfCPU)
	}
	return nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
