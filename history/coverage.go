package history

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// A Coverage is a period of a resource that is complete, or one that is incomplete, with its cause.
type Coverage struct {
	Group, Resource, Scope                 string
	Complete                               bool
	From, To                               time.Time // zero From: from before the record; zero To: the period continues, or nothing was recorded since
	FromRV, ToRV                           string
	Live                                   bool        // the period continues, and a recorder is writing
	Cause                                  delta.Cause // why the period is incomplete
	Detail                                 string
	Outcome                                delta.Outcome // of a gap: relisted or equal
	Appeared, Changed, Vanished, Unchanged int64         // of a gap: how the list compared with what was recorded
	Gap                                    int64         // number of the gap, 0 if the period is not a gap
}

// Coverage lists the complete and the incomplete periods of the record, by resource and time. If the scope names a
// namespace, Coverage skips streams that are confined to another one.
func (c Completeness) Coverage(ctx context.Context, scope Scope) ([]Coverage, error) {
	streams, err := c.view.streamsIn(ctx, scope)
	if err != nil {
		return nil, err
	}
	in := make(map[[3]string]bool, len(streams))
	for _, s := range streams {
		in[[3]string{s.Group, s.Resource, s.Scope}] = true
	}
	rows, err := c.view.db.Query(ctx, `
		SELECT api_group, resource, scope, complete, from_at, to_at, coalesce(from_rv, ''), coalesce(to_rv, ''), coalesce(live, false), coalesce(cause, ''), coalesce(detail, ''),
			coalesce(outcome, ''), coalesce(appeared, 0), coalesce(changed, 0), coalesce(vanished, 0), coalesce(unchanged, 0), coalesce(gap, 0)
		FROM kuberewind.coverage WHERE cluster = $1 ORDER BY api_group, resource, scope, from_at NULLS FIRST, to_at NULLS LAST`, c.view.cluster.Name)
	if err != nil {
		return nil, fmt.Errorf("read the coverage of the record: %w", err)
	}
	var all []Coverage
	var one Coverage
	var from, to *time.Time
	_, err = pgx.ForEachRow(rows, []any{
		&one.Group, &one.Resource, &one.Scope, &one.Complete, &from, &to, &one.FromRV, &one.ToRV, &one.Live, &one.Cause, &one.Detail,
		&one.Outcome, &one.Appeared, &one.Changed, &one.Vanished, &one.Unchanged, &one.Gap,
	}, func() error {
		// A resource that the configuration excludes has no stream.
		if one.From, one.To = timeOf(from), timeOf(to); in[[3]string{one.Group, one.Resource, one.Scope}] || scope.Streams == nil {
			all = append(all, one)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the coverage of the record: %w", err)
	}
	return all, nil
}
