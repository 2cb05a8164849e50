package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/timeline"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
	scene "github.com/kuberewind/kuberewind/internal/scene/record"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

// A timelineSize says how much the timeline page is measured on, and for how long it is used.
type timelineSize struct {
	deltas  int64
	live    int
	scrub   time.Duration
	commits int // in a round
}

var timelineSizes = map[string]timelineSize{
	quick:  {20_000, 1000, 20 * time.Second, 20},
	middle: {300_000, 20_000, 2 * time.Minute, 100},
	full:   {3_000_000, 20_000, 10 * time.Minute, 100}, largest: {3_000_000, 20_000, 10 * time.Minute, 100},
}

// timelines measure the timeline page on a record, and on the recording, if there is one. The run names the record, or makes
// one. Changes are committed only into records that the run made.
func timelines(ctx context.Context, run *measure.Run) error {
	size := timelineSizes[run.Report.Size]
	return run.OnServer(ctx, measure.ServerOptions{}, func(server *measure.Server) error {
		read := timeline.Record{URL: run.Record, Text: "a record that was there", Scrub: size.scrub}
		written := size
		if run.Record != "" {
			written = timelineSizes[quick]
		}
		url, err := generatedRecord(ctx, run, server, written.deltas, written.live, checkpoint.Interval)
		if err != nil {
			return err
		}
		if err := countAhead(ctx, url); err != nil {
			return err
		}
		write := timeline.Record{URL: url, Text: "generated"}
		if run.Record == "" {
			read.URL, read.Text = write.URL, write.Text
		}
		if err := timeline.Measure(ctx, run, read); err != nil {
			return err
		}
		if err := timeline.Commits(ctx, run, write, size.commits); err != nil || run.Recording == "" {
			return err
		}
		recorded, err := recordedTimeline(ctx, run, server)
		if err != nil {
			return err
		}
		recorded.Scrub = size.scrub
		if err := timeline.Measure(ctx, run, recorded); err != nil {
			return err
		}
		return timeline.Commits(ctx, run, recorded, size.commits)
	})
}

// recordedTimeline makes a record of the recording, at the times of its events.
func recordedTimeline(ctx context.Context, run *measure.Run, server *measure.Server) (r timeline.Record, err error) {
	source := data.Source{Path: run.Recording}
	set, err := source.Open()
	if err != nil {
		return r, err
	}
	if r.Text, err = source.Name(); err != nil {
		return r, err
	}
	r.Name = "recording"
	if r.URL, err = server.NewRecord(ctx); err != nil {
		return r, err
	}
	pool, err := postgres.NewPool(ctx, r.URL, checkpoint.Session)
	if err != nil {
		return r, err
	}
	defer pool.Close()
	if err := scene.SetInto(ctx, r.URL, set, dueCheckpoints(r.URL, pool)); err != nil {
		return r, err
	}
	return r, countAhead(ctx, r.URL)
}

// countAhead makes the counts that a recorder makes beside the record.
func countAhead(ctx context.Context, url string) error {
	clusters, err := history.Clusters(ctx, url)
	if err != nil {
		return err
	}
	pool, err := postgres.NewCounterPool(ctx, url, activity.Session)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, c := range clusters {
		counter := activity.NewCounter(pool, c, activity.Options{Busy: 1})
		err := counter.CountDue(ctx)
		for isLocked(err) {
			err = counter.CountDue(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isLocked reports whether another session had the table of counts, such as autovacuum. A recorder tries again, too.
func isLocked(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && refusal.Code == pgerrcode.LockNotAvailable
}
