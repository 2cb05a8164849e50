package changelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/env"
)

// defaultSince is the default of --since for a log of many objects.
const defaultSince = "1h"

// window is the time range that log shows, and how many deltas of it.
type window struct {
	since, until, around string
	within               time.Duration
	follow, newestFirst  bool
	limit, tail          int

	bounds entries.Bounds
	// fromNow is true if log shows only new deltas.
	fromNow bool
}

func (w *window) addFlags(flags *pflag.FlagSet) {
	env.InstantVar(flags, &w.since, "since", "", "first instant (default: the beginning with a name, else "+defaultSince+"; with -f now)")
	env.InstantVar(flags, &w.until, "until", "now", "last instant, inclusive")
	env.InstantVar(flags, &w.around, "around", "", "instant in the middle; --within sets the distance")
	env.DurationVar(flags, &w.within, "within", 5*time.Minute, "with --around, the time before and after")
	flags.BoolVarP(&w.follow, "follow", "f", false, "show new deltas, until interrupted")
	flags.IntVar(&w.limit, "limit", 0, "show only this many of the newest deltas")
	flags.IntVar(&w.tail, "tail", 0, "with -f, first show this many of the newest deltas")
	flags.BoolVar(&w.newestFirst, "reverse", false, fmt.Sprintf("newest first, at most %d unless --limit is set", mostReversed))
}

// validate rejects contradictory flags.
func (w *window) validate(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	var err error
	switch {
	case w.follow && changed("until"):
		err = errors.New("--follow has no end, so it cannot be used with --until")
	case w.follow && w.newestFirst:
		err = errors.New("--follow cannot be used with --reverse")
	case w.follow && w.around != "":
		err = errors.New("--follow has no end, so it cannot be used with --around")
	case w.around != "" && (changed("since") || changed("until")):
		err = errors.New("--around has a beginning and an end, so it cannot be used with --since or --until")
	case w.around == "" && changed("within"):
		err = errors.New("--within needs an instant: set it with --around")
	case w.limit < 0 || changed("limit") && w.limit == 0:
		err = fmt.Errorf("--limit %d: use 1 or more", w.limit)
	case w.tail < 0:
		err = fmt.Errorf("--tail %d: use 0 or more", w.tail)
	case w.follow && w.limit > 0:
		err = errors.New("--follow has no end, so it cannot be used with --limit; --tail shows the newest deltas first")
	case !w.follow && changed("tail"):
		err = errors.New("--tail needs --follow; without it, use --limit")
	}
	if err != nil {
		return env.Mistake(cmd, err)
	}
	return nil
}

// read parses the instants.
func (w *window) read(e *env.Env) (err error) {
	if w.around != "" {
		if w.bounds.Until, err = e.Instant(w.around); err != nil {
			return fmt.Errorf("--around: %w", err)
		}
		return nil
	}
	if w.since != "" {
		if w.bounds.Since, err = e.Instant(w.since); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		w.bounds.HasSince = true
	}
	if w.bounds.Until, err = e.Instant(w.until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	if w.fromNow = w.follow && w.since == "" && w.tail == 0; w.fromNow {
		w.bounds.Since, w.bounds.HasSince, w.bounds.BySelf = history.Now(), true, true
	}
	return nil
}

// place sets the beginning and the end around the instant of --around.
func (w *window) place(ctx context.Context, e *env.Env, rec *env.Record) error {
	if w.around == "" {
		return nil
	}
	at, err := w.middle(ctx, e, rec)
	if err != nil {
		return fmt.Errorf("--around: %w", err)
	}
	w.bounds.Since, w.bounds.Until, w.bounds.HasSince = history.At(at.Add(-w.within)), history.At(at.Add(w.within)), true
	return nil
}

// middle returns the time of the instant of --around.
func (w *window) middle(ctx context.Context, e *env.Env, rec *env.Record) (time.Time, error) {
	at, all := w.bounds.Until, history.Scope{}
	if at.IsNow() {
		return e.Now(), nil
	}
	point, err := rec.Resolve(ctx, at, all)
	if err == nil && at.RV() != "" {
		// Each stream reaches a resource version at another seq. At this seq, all streams have reached it.
		point, err = rec.Resolve(ctx, history.AtSeq(max(1, point.CompleteUpTo(all))), all)
	}
	return point.Time, err
}

// sinceDefault sets the default of --since for a log of many objects, which does not begin with the record.
func (w *window) sinceDefault(e *env.Env) (err error) {
	if w.bounds.HasSince {
		return nil
	}
	if w.bounds.Since, err = e.Instant(defaultSince); err != nil {
		return err
	}
	w.bounds.HasSince, w.bounds.BySelf = true, true
	return nil
}

// most returns how many deltas are kept for later output; 0 if each delta is printed at once.
func (w *window) most() int {
	switch {
	case w.limit > 0:
		return w.limit
	case w.newestFirst:
		return mostReversed
	}
	return w.tail
}
