package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/migrations"
)

// recordCommand makes a record that run -record can ask again and again: the largest takes half an hour to make.
func recordCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench record", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("database", "", "URL of the empty database that the record is written into")
	deltas := flags.Int64("deltas", 300_000, "how many deltas are recorded, 100,000 a day")
	live := flags.Int("live", 20_000, "how many objects live at any time")
	seed := flags.Uint64("seed", 1, "of the generated data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" || *live < 1 || *deltas < int64(*live) || flags.NArg() > 0 {
		return errors.New("name an empty database by -database URL, at least one live object, and at least as many deltas; there are no arguments")
	}
	if err := emptyRecord(ctx, *url); err != nil {
		return err
	}
	run := &measure.Run{Report: &measure.Report{Seed: *seed}, Log: stderr}
	if err := generate(ctx, run, *url, *deltas, *live, checkpoint.Interval); err != nil {
		return err
	}
	if err := countAhead(ctx, *url); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s deltas are on record: make bench ONLY=13 RECORD=URL asks it\n", measure.Number(float64(*deltas)))
	return err
}

// emptyRecord brings a database to the newest schema. A record that has a cluster is refused.
func emptyRecord(ctx context.Context, url string) error {
	if err := migrations.Up(ctx, url, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := migrations.Roles(ctx, conn); err != nil {
		return err
	}
	var used bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kuberewind.clusters)`).Scan(&used); err != nil {
		return err
	}
	if used {
		return errors.New("the database has a record already: name an empty one")
	}
	return nil
}
