package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/kuberewind/kuberewind/bench/data"
)

// dataCommand says what the data consists of that is measured on.
func dataCommand(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var source data.Source
	flags := flag.NewFlagSet("bench data", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&source.Path, "recording", "", "a recording; without it, data is generated")
	flags.Uint64Var(&source.Settings.Seed, "seed", 1, "of generated data")
	flags.IntVar(&source.Settings.Live, "live", 20_000, "how many objects live at any time, in generated data")
	flags.IntVar(&source.Settings.Events, "events", 300_000, "how many events there are, in generated data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("there are no arguments: %q", flags.Args())
	}
	set, err := source.Open()
	if err != nil {
		return err
	}
	description, err := data.Describe(set)
	if err != nil {
		return err
	}
	return description.Table(stdout)
}
