// Command bench measures the recorder side by side with what a user would take in its place.
//
//	go run ./bench run -size quick
//	go run ./bench run -only 2,8
//	go run ./bench report -page bench/results/middle.md bench-results/middle.json
//	go run ./bench compare -old HEAD~1
//	go run ./bench record -database postgres://localhost/bench -deltas 3000000
//	go run ./bench data -live 2000
//	go run ./bench sizing -nodes 100 -pods 3000
//
// METHODOLOGY.md says what is measured, on what data, and what the figures do not show.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/kuberewind/kuberewind/bench/answers"
	"github.com/kuberewind/kuberewind/bench/api"
	"github.com/kuberewind/kuberewind/bench/ingest"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/parts"
	"github.com/kuberewind/kuberewind/bench/serve"
	"github.com/kuberewind/kuberewind/bench/timeline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := children().Run(ctx)
	if errors.Is(err, measure.ErrNotChild) {
		err = command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// children are the parts of this program that run in processes of their own.
func children() measure.Children {
	all := measure.Children{rebuildChild: rebuildOnce, serve.ChildName: serve.Child}
	maps.Copy(all, parts.Children())
	maps.Copy(all, ingest.Children())
	maps.Copy(all, answers.Children())
	maps.Copy(all, api.Children())
	maps.Copy(all, timeline.Children())
	return all
}

// commands are what this program does, by its first argument.
var commands = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) error{
	"run": runCommand, "report": reportCommand, "compare": compareCommand, "data": dataCommand,
	"record": recordCommand, "sizing": sizingCommand,
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	const usage = "the first argument is run (the suite), report (what runs have kept, shown again or as a page), compare (the micro-benchmarks of two revisions), " +
		"record (a record to measure on), data (what is measured on) or sizing (how large a record grows); -h after it lists its flags"
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		_, err := fmt.Fprintln(stdout, usage)
		return err
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New(usage)
	}
	return commands[args[0]](ctx, args[1:], stdout, stderr)
}
