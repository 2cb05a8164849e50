package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/bench/ingest"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/parts"
)

// The sizes of a run.
const (
	quick = "quick"
	full  = "full"
)

// A part of the suite measures some of the numbers of METHODOLOGY.md.
type part struct {
	numbers []string
	run     func(ctx context.Context, run *measure.Run) error
}

func sized(do func(context.Context, *measure.Run, parts.Sizes) error) func(context.Context, *measure.Run) error {
	return func(ctx context.Context, run *measure.Run) error {
		sizes := parts.Full()
		if run.Report.Size == quick {
			sizes = parts.Quick()
		}
		return do(ctx, run, sizes)
	}
}

// ingested is sized for the way of a delta.
func ingested(do func(context.Context, *measure.Run, ingest.Sizes) error) func(context.Context, *measure.Run) error {
	return func(ctx context.Context, run *measure.Run) error {
		sizes := ingest.Full()
		if run.Report.Size == quick {
			sizes = ingest.Quick()
		}
		sizes.Recording = run.Recording
		return do(ctx, run, sizes)
	}
}

var suite = []part{
	{[]string{"1", "3", "4"}, ingested(ingest.Throughput)},
	{[]string{"6"}, ingested(ingest.Latency)},
	{[]string{"2"}, sized(parts.Sink)},
	{[]string{"5"}, sized(parts.Memory)},
	{[]string{"7"}, rebuilds},
	{[]string{"8"}, sized(parts.Queue)},
	{[]string{"9"}, sized(parts.Index)},
	{[]string{"10"}, sized(parts.Restart)},
	{[]string{"11"}, sized(parts.Growth)},
}

var errBroken = errors.New("something that must hold does not")

// runCommand runs the suite, or a part of it. A part that fails does not end it, and what was measured is kept.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("bench run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.String("size", full, "full, or quick: some minutes, to see that everything works")
	only := flags.String("only", "", "numbers of measures, such as 2,8; all, if empty")
	rounds := flags.Int("rounds", 5, "how often each way is run; figures that are published have five or more")
	seed := flags.Uint64("seed", 1, "of generated data")
	dir := flags.String("dir", os.TempDir(), "where databases and files are put; they are removed at the end")
	recording := flags.String("recording", "", "a recording of a real control plane to measure on as well (make bench-recording makes one)")
	keep := flags.String("keep", "bench-results", "folder in which the report is kept as JSON")
	output := flags.String("o", "table", "output: table, json or markdown")
	check := flags.Bool("check", false, "fail if something that must hold does not")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *size != quick && *size != full || *rounds < 1 {
		return fmt.Errorf("-size is quick or full, -rounds at least 1, and there are no arguments: %q, %d, %q", *size, *rounds, flags.Args())
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	show, err := form(*output, "")
	if err != nil {
		return err
	}
	run := &measure.Run{Rounds: *rounds, Log: stderr, Dir: *dir, Recording: *recording, Report: &measure.Report{
		Date: time.Now().UTC().Truncate(time.Second), Command: append([]string{"bench", "run"}, args...), Seed: *seed, Size: *size, Machine: measure.ThisMachine(),
		Versions: measure.Versions(),
	}}
	for _, p := range chosen {
		if failure := p.run(ctx, run); failure != nil {
			err = errors.Join(err, failure)
			run.Say("%s", failure)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(run.Report.Results) > 0 {
		path, failure := run.Report.Keep(*keep)
		if err = errors.Join(err, failure); failure == nil {
			run.Say("kept in %s", path)
		}
		err = errors.Join(err, show(run.Report, stdout))
	}
	if broken := run.Report.Broken(); *check && len(broken) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %s", errBroken, strings.Join(broken, "; ")))
	}
	return err
}

func choose(only string) (chosen []part, err error) {
	if only == "" {
		return suite, nil
	}
	wanted := strings.Split(only, ",")
	for _, p := range suite {
		if slices.ContainsFunc(p.numbers, func(n string) bool { return slices.Contains(wanted, n) }) {
			chosen = append(chosen, p)
		}
	}
	for _, n := range wanted {
		if !slices.ContainsFunc(suite, func(p part) bool { return slices.Contains(p.numbers, n) }) {
			return nil, fmt.Errorf("-only: there is no measure %q", n)
		}
	}
	return chosen, nil
}

// form is how a report is shown. Charts, where Markdown names them, are in a folder as the page sees it.
func form(output, charts string) (func(*measure.Report, io.Writer) error, error) {
	switch output {
	case "table":
		return (*measure.Report).Table, nil
	case "json":
		return (*measure.Report).JSON, nil
	case "markdown":
		return func(r *measure.Report, w io.Writer) error { return r.Markdown(w, charts) }, nil
	}
	return nil, fmt.Errorf("-o is table, json or markdown: %q", output)
}

// reportCommand shows again what a run has kept.
func reportCommand(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	output := flags.String("o", "table", "output: table, json or markdown")
	charts := flags.String("charts", "", "folder to write charts into, as SVG; none if empty")
	link := flags.String("link", "", "the same folder as the Markdown page is to name it; -charts, if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("the argument is the file of one report, such as bench run keeps: %q", flags.Args())
	}
	if *link == "" {
		*link = *charts
	}
	show, err := form(*output, *link)
	if err != nil {
		return err
	}
	report, err := measure.Read(flags.Arg(0))
	if err != nil {
		return err
	}
	if *charts != "" {
		if err := report.Charts(*charts); err != nil {
			return err
		}
	}
	return show(report, stdout)
}
