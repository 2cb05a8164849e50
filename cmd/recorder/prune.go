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

// pruneFlags holds the flags of the command line, not yet checked.
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
		Long: "Drop the oldest days of the record, by age or by size, for all its clusters. The command drops a day only as a whole, and only\n" +
			"if later days store every object again that was alive after it. The recorder stores all living objects again each day.\n" +
			"The record lists every prune (the view prunes).\n" +
			"--database may name a login that is a member of " + migrations.PrunerRole + ", and of nothing else.\n\n" +
			"Exit codes:\n" +
			"  0   done\n" +
			"  1   failed, or a day could not be dropped\n" +
			"  2   wrong usage\n" +
			"  3   the database cannot be used",
		Example: `  recorder prune --older-than 90d --dry-run
  recorder prune --max-size 500Gi --reason 'the disk is full'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.prune(cmd, f) },
	}
	f.output.add(cmd)
	cmd.Flags().StringVar(&f.olderThan, "older-than", "", "drop days that ended longer ago than this, by the database's clock, such as 90d or 36h")
	cmd.Flags().StringVar(&f.maxSize, "max-size", "", "drop the oldest days until the other days are no larger than this, such as 500Gi")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; the record keeps this text (default: the flags)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be dropped, and drop nothing")
	concerns(cmd, databaseSettings...)
	return cmd
}

// options checks the flags and returns them as options of a prune.
func (f *pruneFlags) options() (o retention.Options, err error) {
	if err := f.output.validate(); err != nil {
		return o, err
	}
	if f.olderThan == "" && f.maxSize == "" {
		return o, errors.New("say what to drop, with --older-than or --max-size")
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
			return o, fmt.Errorf("--max-size %q is not a size such as 500Gi", f.maxSize)
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

// maxAgeDays is a hundred years. No record is older.
const maxAgeDays = 100 * 365

// parseAge parses a duration. It also accepts days, which Go's durations do not have.
func parseAge(text string) (time.Duration, error) {
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // more days than fit would wrap around to a short age
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age <= 0 || age > maxAgeDays*24*time.Hour {
		return 0, errors.New("not an age such as 90d or 36h")
	}
	return age, nil
}

// errNotDropped says that the flags select a day that the command could not drop.
var errNotDropped = errors.New("not all of these days could be dropped")

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
			err = fmt.Errorf("%w: %s", errNotDropped, report.Obstacle)
		}
		return err
	})
}
