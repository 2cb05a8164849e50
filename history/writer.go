package history

import (
	"context"
	"fmt"
	"time"
)

// A Writer is a field manager that provably wrote a version.
type Writer struct {
	Manager, Subresource   string
	Seq                    int64
	ObservedAt, OccurredAt time.Time
}

// lastWriterRows bounds how far back LastWriter looks.
const lastWriterRows = 1000

// LastWriter returns the last proved writer of a life before a delta. It looks at 1,000 deltas of the object at most; found
// reports whether one of them has a proved writer. The writer need not be the client that deleted the object: no watch
// shows that client.
func (u Lookup) LastWriter(ctx context.Context, objectID, before int64) (w Writer, found bool, err error) {
	days, err := u.view.daysFrom(ctx, objectID, before) // a life has the seq of its first delta
	if err != nil || len(days) == 0 {
		return Writer{}, false, err
	}
	err = u.view.db.QueryRow(ctx, `
		SELECT seq, observed_at, occurred_at, manager, coalesce(subresource, '')
		FROM (
			SELECT seq, observed_at, occurred_at, manager, subresource, manager_evidence FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = $2 AND seq < $3 AND observed_at BETWEEN $4 AND $5 ORDER BY seq DESC LIMIT $6
		) recent
		WHERE manager IS NOT NULL AND manager_evidence IN (1, 2)
		ORDER BY seq DESC LIMIT 1`, u.view.cluster.Number, objectID, before, days[0].FirstAt, days[len(days)-1].LastAt, lastWriterRows).
		Scan(&w.Seq, &w.ObservedAt, &w.OccurredAt, &w.Manager, &w.Subresource)
	switch {
	case isNoRows(err):
		return Writer{}, false, nil
	case err != nil:
		return Writer{}, false, fmt.Errorf("look for the last proved writer before seq %d: %w", before, err)
	}
	w.ObservedAt, w.OccurredAt = w.ObservedAt.UTC(), w.OccurredAt.UTC()
	return w, true, nil
}
