package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/reports"
	"github.com/kuberewind/kuberewind/internal/retention"
	"github.com/kuberewind/kuberewind/migrations"
)

// pruneFlags are as they were given.
type pruneFlags struct {
	output                     outputFlag
	olderThan, maxSize, reason string
	dryRun                     bool
}

func (p *program) pruneCommand() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop the oldest days of the record",
		Long: "Drop the oldest days of the record, by age or by size, of all its clusters. A day goes whole, and only when every object that was\n" +
			"alive after it is stored again in a later day: the recorder does that daily. Every prune is on record (the view prunes).\n" +
			"--database may name a login that is a member of " + migrations.PrunerRole + ", and of nothing else.\n\n" +
			"Exit codes: 0 done, 1 a day that was to go has to stay, or failed.",
		Example: `  recorder prune --older-than 90d --dry-run
  recorder prune --max-size 500Gi --reason 'the disk is full'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.prune(cmd, f) },
	}
	f.output.add(cmd)
	cmd.Flags().StringVar(&f.olderThan, "older-than", "", "drop days that ended longer ago by the database's clock, such as 90d or 36h")
	cmd.Flags().StringVar(&f.maxSize, "max-size", "", "drop the oldest days until the rest of them is no larger, such as 500Gi")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, put on record (default: the flags)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would go, and drop nothing")
	concerns(cmd, databaseSettings...)
	return cmd
}

// options gives what the flags say.
func (f *pruneFlags) options() (o retention.Options, err error) {
	if err := f.output.validate(); err != nil {
		return o, err
	}
	if f.olderThan == "" && f.maxSize == "" {
		return o, errors.New("say what is to go, with --older-than or --max-size")
	}
	var given []string
	if f.olderThan != "" {
		if o.OlderThan, err = parseAge(f.olderThan); err != nil {
			return o, fmt.Errorf("--older-than %q: %w", f.olderThan, err)
		}
		given = append(given, "--older-than "+f.olderThan)
	}
	if f.maxSize != "" {
		size, err := resource.ParseQuantity(f.maxSize)
		if err != nil || size.Value() <= 0 {
			return o, fmt.Errorf("--max-size %q is no size such as 500Gi", f.maxSize)
		}
		o.MaxBytes = size.Value()
		given = append(given, "--max-size "+f.maxSize)
	}
	o.DryRun, o.Reason = f.dryRun, f.reason
	if o.Reason == "" {
		o.Reason = strings.Join(given, " ")
	}
	return o, nil
}

// maxAgeDays is a hundred years: no record is older.
const maxAgeDays = 100 * 365

// parseAge takes days, which Go's durations do not.
func parseAge(text string) (time.Duration, error) {
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // more days than fit would wrap around to a short age
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age <= 0 || age > maxAgeDays*24*time.Hour {
		return 0, errors.New("no age such as 90d or 36h")
	}
	return age, nil
}

// errKept says that a day that was to go is still there.
var errKept = errors.New("not everything that was to go could go")

func (p *program) prune(cmd *cobra.Command, f pruneFlags) error {
	options, err := f.options()
	if err != nil {
		return mistake(cmd, err)
	}
	return p.withRecord(cmd, func(ctx context.Context, _ config.Config, _ *database.Database, conn *pgx.Conn) error {
		report, err := retention.Prune(ctx, conn, options)
		if printed := p.print(f.output, report, func(bool) error { return reports.Pruned(p.out, report) }); err == nil {
			err = printed
		}
		if err == nil && report.Obstacle != "" {
			err = fmt.Errorf("%w: %s", errKept, report.Obstacle)
		}
		return err
	})
}
