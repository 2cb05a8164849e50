package reports

import (
	"fmt"
	"io"

	"github.com/kuberewind/kuberewind/internal/retention"
)

// Pruned prints the days that were dropped, or would be dropped.
func Pruned(out io.Writer, report retention.Report) error {
	t := newTable(out)
	for _, d := range report.Dropped {
		t.titled("DAY", "SIZE", "FOR ITS")
		t.row(d.Day, size(d.Bytes), d.Why)
	}
	if err := t.flush(); err != nil {
		return err
	}
	done := "dropped"
	if report.DryRun {
		done = "would be dropped"
	}
	fmt.Fprintf(out, "%d days %s; %s of %s are left\n", len(report.Dropped), done, size(report.Left), size(report.Bytes))
	if report.Checkpoints+report.Lives+report.Documents > 0 {
		fmt.Fprintf(out, "dropped with them: %d checkpoints, %d lives, %d documents of the server\n", report.Checkpoints, report.Lives, report.Documents)
	}
	return nil
}

// size formats a number of bytes for people.
func size(bytes int64) string {
	const kibi = 1024
	if bytes < kibi {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/kibi, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if value < kibi {
			break
		}
		value, unit = value/kibi, next
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
