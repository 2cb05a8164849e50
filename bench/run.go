package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/bench/api"
	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/ingest"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/parts"
	"github.com/kuberewind/kuberewind/bench/timeline"
	build "github.com/kuberewind/kuberewind/internal/version"
)

// The sizes of a run.
const (
	quick   = "quick"
	middle  = "middle"
	full    = "full"
	largest = "largest"
)

var sizes = []string{quick, middle, full, largest}

// A part of the suite measures some of the numbers of METHODOLOGY.md.
type part struct {
	numbers []string
	run     func(ctx context.Context, run *measure.Run) error
	named   bool // it is only run when it is named
}

func sized(do func(context.Context, *measure.Run, parts.Sizes) error) func(context.Context, *measure.Run) error {
	sizes := map[string]func() parts.Sizes{quick: parts.Quick, middle: parts.Middle, full: parts.Full, largest: parts.Full}
	return func(ctx context.Context, run *measure.Run) error { return do(ctx, run, sizes[run.Report.Size]()) }
}

// ingested is sized for the way of a delta.
func ingested(do func(context.Context, *measure.Run, ingest.Sizes) error) func(context.Context, *measure.Run) error {
	sizes := map[string]func() ingest.Sizes{quick: ingest.Quick, middle: ingest.Middle, full: ingest.Full, largest: ingest.Largest}
	return func(ctx context.Context, run *measure.Run) error {
		s := sizes[run.Report.Size]()
		s.Recording = run.Recording
		return do(ctx, run, s)
	}
}

var suite = []part{
	{numbers: []string{"1", "3", "4"}, run: ingested(ingest.Throughput)},
	{numbers: []string{"6"}, run: ingested(ingest.Latency)},
	{numbers: []string{"2"}, run: sized(parts.Sink)},
	{numbers: []string{"5"}, run: sized(parts.Memory)},
	{numbers: []string{"7"}, run: rebuilds},
	{numbers: []string{"8"}, run: sized(parts.Queue)},
	{numbers: []string{"9"}, run: sized(parts.Index)},
	{numbers: []string{"10"}, run: sized(parts.Restart)},
	{numbers: []string{"11"}, run: sized(parts.Growth)},
	{numbers: []string{"12"}, run: ingested(ingest.Load), named: true},
	{numbers: []string{"13"}, run: answered},
	{numbers: []string{api.Number}, run: past, named: true},
	{numbers: []string{timeline.Number}, run: timelines, named: true},
}

var errBroken = errors.New("something that must hold does not")

// measures are the numbers of all measures that the suite runs by default, in their order.
func measures() (all []string) {
	for _, p := range suite {
		if !p.named {
			all = append(all, p.numbers...)
		}
	}
	slices.SortFunc(all, measure.ByNumber)
	return all
}

// runCommand runs the suite, or a part of it, and adds it to the results that there are. A part that fails does not end it, and what was measured is kept.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("bench run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.String("size", middle, "middle; full or largest: hours; or quick: some minutes, to see that everything works")
	only := flags.String("only", "", "numbers of measures, such as 2,8, also of those that the results have already; if empty, all that they do not have but 12")
	rounds := flags.Int("rounds", 5, "how often each way is run; figures that are published have five or more")
	seed := flags.Uint64("seed", 1, "of generated data")
	dir := flags.String("dir", os.TempDir(), "where databases and files are put; they are removed at the end")
	recording := flags.String("recording", "", "a recording of a real control plane to measure on as well (make bench-recording makes one)")
	record := flags.String("record", "", "PostgreSQL URL of a record that is asked instead of one that is made: by measures 13 and 15, and by measure 14 as its largest")
	loadFor := flags.Duration("load-for", time.Hour, "how long measure 12 has a recorder under load")
	loadRate := flags.Float64("load-rate", 100, "by how many events a second")
	results := flags.String("results", "", "file of the results, to which new ones are added (default bench-results/SIZE.json)")
	output := flags.String("o", "table", "output: table or json")
	check := flags.Bool("check", false, "fail if something that must hold does not, of the measures that -only names, or of all that the results have")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || !slices.Contains(sizes, *size) || *rounds < 1 || *loadFor <= 0 || *loadRate <= 0 {
		return fmt.Errorf("-size is quick, middle, full or largest, -rounds at least 1, -load-for and -load-rate more than nothing, and there are no arguments: %q", args)
	}
	show, err := form(*output)
	if err != nil {
		return err
	}
	path := cmp.Or(*results, filepath.Join("bench-results", *size+".json"))
	report := &measure.Report{Seed: *seed, Size: *size, Machine: measure.ThisMachine(), Versions: measure.Versions()}
	if report, err = report.Continue(path); err != nil {
		return err
	}
	if *recording != "" { // before anything is measured without it
		if _, err := data.Open(*recording); err != nil {
			return err
		}
	}
	chosen, err := choose(*only, report)
	if err != nil {
		return err
	}
	run := &measure.Run{Rounds: *rounds, Log: stderr, Dir: *dir, Recording: *recording, Record: *record, LoadFor: *loadFor, LoadRate: *loadRate, Report: report}
	if others := report.OfOthers(build.String()); len(others) > 0 {
		run.Say("what %s has of %s was measured with another version than this, %s: -only %s measures it again", path, strings.Join(others, ", "), build.String(), strings.Join(others, ","))
	}
	run.Keep = func() error { return report.Keep(path) }
	for _, p := range chosen {
		run.Begin(measure.Origin{Measures: p.numbers, Version: build.String(), Command: spelled(flags)})
		failure := p.run(ctx, run)
		if failure == nil {
			run.End()
		} else {
			err = errors.Join(err, failure)
			run.Interrupt()
			run.Say("%s", failure)
		}
		if failure := run.Keep(); failure != nil {
			return errors.Join(err, failure)
		}
		if ctx.Err() != nil {
			break
		}
	}
	run.Say("the results are in %s; not measured yet: %s", path, cmp.Or(strings.Join(report.Missing(measures()), ", "), "none"))
	err = errors.Join(err, show(report, stdout))
	if broken := report.Broken(checked(*only, chosen)...); *check && len(broken) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %s", errBroken, strings.Join(broken, "; ")))
	}
	return err
}

// spelled returns the command as a user would type it: without the paths of files, and without defaults.
func spelled(flags *flag.FlagSet) string {
	words := []string{"bench", "run"}
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() != f.DefValue && !slices.Contains([]string{"dir", "results", "o"}, f.Name) {
			value := f.Value.String()
			if f.Name == "record" {
				value = "URL" // It may hold a password.
			}
			words = append(words, "-"+f.Name, value)
		}
	})
	return strings.Join(words, " ")
}

// choose gives the parts that are named, or those of which the report is not complete.
func choose(only string, report *measure.Report) (chosen []part, err error) {
	wanted := report.Missing(measures())
	if only != "" {
		wanted = strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	}
	for _, p := range suite {
		if slices.ContainsFunc(p.numbers, func(n string) bool { return slices.Contains(wanted, n) }) {
			chosen = append(chosen, p)
		}
	}
	for _, n := range wanted {
		if !slices.ContainsFunc(suite, func(p part) bool { return slices.Contains(p.numbers, n) }) {
			return nil, fmt.Errorf("-only: there is no measure %q; bench/METHODOLOGY.md lists them", n)
		}
	}
	return chosen, nil
}

// checked are the measures that have to hold: those of the parts that are named, or all of the results, which is none named.
func checked(only string, chosen []part) (numbers []string) {
	if only == "" {
		return nil
	}
	for _, p := range chosen {
		numbers = append(numbers, p.numbers...)
	}
	return numbers
}

// form is how a report is shown.
func form(output string) (func(*measure.Report, io.Writer) error, error) {
	switch output {
	case "table":
		return (*measure.Report).Table, nil
	case "json":
		return (*measure.Report).JSON, nil
	}
	return nil, fmt.Errorf("-o is table or json: %q", output)
}

// reportCommand shows again what was measured, or makes the page of it.
func reportCommand(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	output := flags.String("o", "table", "output: table or json")
	page := flags.String("page", "", "write a page of Markdown into this file, with its charts in a folder beside it that has the page's name, instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("the argument is a file of results, such as bench run keeps: %q", flags.Args())
	}
	show, err := form(*output)
	if err != nil {
		return err
	}
	report, err := measure.Read(flags.Arg(0))
	if err != nil {
		return err
	}
	if *page == "" {
		return show(report, stdout)
	}
	return writePage(report, *page)
}

// writePage replaces a page and its charts. Charts of what is not measured any more go.
func writePage(report *measure.Report, path string) error {
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	if folder == path {
		return fmt.Errorf("-page is a file such as bench/results/middle.md: %q", path)
	}
	var text bytes.Buffer
	if err := report.Page(&text, filepath.Base(folder), measures()); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	for _, chart := range old {
		err = errors.Join(err, os.Remove(chart))
	}
	return errors.Join(err, report.Charts(folder), os.WriteFile(path, text.Bytes(), 0o644))
}
