package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/kuberewind/kuberewind/bench/measure"
)

var errRatio = errors.New("a required ratio does not hold")

// rebuildCommand measures what reading the record costs: it makes synthetic records of several sizes, each the beginning of the
// next, in a PostgreSQL of its own, and rebuilds the cluster of each at random instants — with checkpoints, without, and from a
// plain table of full rows, whose answers have to be equal.
//
// The records are written as the recorder writes them, with its checkpoints. The server has the settings of the embedded one and no
// fsync, which only writing would feel; nothing is read from a cold disk. Ways that are compared are measured in turn, so that what
// else the machine does hits them alike; a ratio of one run can be trusted, a time of another machine cannot. The default sizes
// take about 15 GB in -dir, and up to an hour.
func rebuildCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	b := &bench{log: stderr, peak: peakOfChild}
	flags := flag.NewFlagSet("bench rebuild", flag.ContinueOnError)
	flags.SetOutput(stderr)
	deltas := flags.String("deltas", "300000,3000000", "how many deltas the records have, smallest first; it spans three days, and its list of objects counts")
	flags.IntVar(&b.Live, "live", 20_000, "how many objects live at any time")
	flags.Int64Var(&b.Versions, "versions", 1000, "how many versions one object has in the largest record")
	flags.Int64Var(&b.Interval, "interval", 0, "deltas between two checkpoints; 0 is the recorder's default")
	flags.IntVar(&b.Instants, "instants", 5, "at how many instants the slow ways are measured; the fast one is at three times as many")
	dir := flags.String("dir", os.TempDir(), "where the PostgreSQL of this run is put; it is removed at the end")
	output := flags.String("o", "table", "output: table or json")
	check := flags.Bool("check", false, "fail if a required ratio does not hold")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *output != "table" && *output != "json" || flags.NArg() > 0 {
		return fmt.Errorf("-o is table or json, and there are no arguments: %q, %q", *output, flags.Args())
	}
	for n := range strings.SplitSeq(*deltas, ",") {
		size, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		if err != nil {
			return fmt.Errorf("-deltas: %w", err)
		}
		b.Deltas = append(b.Deltas, size)
	}
	if err := b.validate(); err != nil {
		return err
	}
	if err := measure.OnServer(ctx, *dir, false, func(server *measure.Server) error {
		b.url, b.postmaster = server.URL, server.PID
		return b.run(ctx)
	}); err != nil {
		return err
	}
	show := b.report.table
	if *output == "json" {
		show = b.report.json
	}
	if err := show(stdout); err != nil {
		return err
	}
	if *check && !b.report.holds() {
		return errRatio
	}
	return nil
}
