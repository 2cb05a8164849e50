package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kuberewind/kuberewind/bench/parts"
)

// sizingCommand says how large the record of a cluster grows in a day, from what generated data takes on disk.
func sizingCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c parts.Cluster
	flags := flag.NewFlagSet("bench sizing", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.Nodes, "nodes", 100, "Nodes")
	flags.IntVar(&c.Pods, "pods", 3000, "Pods that live at any time")
	flags.IntVar(&c.Replaced, "replaced", 3000, "Pods that are made in a day: rollouts, Jobs, autoscaling")
	flags.IntVar(&c.Leaders, "leaders", 10, "controllers that hold an election, of the control plane and of operators")
	events := flags.Int("events", 50_000, "how many deltas of generated data are weighed")
	seed := flags.Uint64("seed", 1, "of that")
	dir := flags.String("dir", os.TempDir(), "where the database is put; it is removed at the end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || c.Nodes < 0 || c.Pods < 0 || c.Replaced < 0 || c.Leaders < 0 {
		return fmt.Errorf("nothing of a cluster is less than none, and there are no arguments: %+v, %q", c, flags.Args())
	}
	w, err := parts.Weigh(ctx, parts.Weighing{Dir: *dir, Seed: *seed, Live: max(*events/25, 100), Events: *events, Times: 5})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Weighed on generated data: %d deltas of %d live objects, seed %d.\n\n", w.Events, w.Live, *seed)
	return w.Table(stdout, c)
}
