package timeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A drawing is what the browser drew of a window, heartbeats with all else.
type drawing struct {
	From, To int64           // of the window
	Strip    int64           // what the bars of the whole record add up to
	Density  int64           // what those of the window add up to
	Lanes    map[int64]int64 // what the marks of each lane on the screen add up to, by its number
}

// left counts marks that are nowhere on the screen, and in no number on it. The record says how many deltas there are.
func (b *bench) left(t *tab) measure.Experiment {
	const drawn, compared = "drawn or in a number", "deltas that were looked for"
	way := measure.Way{Name: "marks", Run: func(ctx context.Context, round int) (measure.Values, error) {
		day := b.day(round)
		var d drawing
		err := t.take(ctx, &b.served, "marks", map[string]int64{"from": day.from.UnixMilli(), "to": day.to.UnixMilli()}, &d)
		if err != nil {
			return nil, err
		}
		recorded, lost, err := b.missing(ctx, &d)
		return measure.Values{drawn: float64(recorded-lost) / float64(recorded), compared: float64(recorded)}, err
	}}
	e := b.experiment("left", "Marks that are left out without a number", []measure.Quantity{{Name: drawn, Unit: "of those on record"}, {Name: compared, Unit: "on record"}}, []measure.Way{way})
	e.Compare = []measure.Comparison{{Number: Number, What: "marks " + drawn, Quantity: drawn, Of: way.Name, By: measure.Alone, AtLeast: 1}}
	e.WarmUp, e.Rounds = false, min(b.Rounds, 3)
	return e
}

// day is one of the record, by UTC, so that each merged mark lies within.
func (b *bench) day(round int) window {
	const day = 24 * time.Hour
	first := b.subject.first.Truncate(day)
	days := int(b.subject.last.Sub(first)/day) + 1
	from := first.Add(time.Duration((days/2+max(round, 0))%days) * day)
	return window{from, from.Add(day)}
}

// missing compares what was drawn with the record. Marks that are drawn twice are an error.
func (b *bench) missing(ctx context.Context, d *drawing) (recorded, lost int64, err error) {
	conn, err := pgx.Connect(ctx, b.record.URL)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	look := func(what string, drawn int64, query string, args ...any) error {
		var there int64
		if err := conn.QueryRow(ctx, query, args...).Scan(&there); err != nil {
			return err
		}
		if drawn > there {
			return fmt.Errorf("%w: %d deltas of %s are drawn, and %d are on record", errAnswer, drawn, what, there)
		}
		recorded, lost = recorded+there, lost+there-drawn
		return nil
	}
	const within = ` WHERE occurred_at >= to_timestamp($1::bigint / 1000.0) AND occurred_at < to_timestamp($2::bigint / 1000.0)`
	if err := look("the record", d.Strip, `SELECT count(*) FROM kuberewind.record_deltas WHERE seq <= $1`, b.subject.seq); err != nil {
		return 0, 0, err
	}
	if err := look("the window", d.Density, `SELECT count(*) FROM kuberewind.record_deltas`+within, d.From, d.To); err != nil {
		return 0, 0, err
	}
	for id, drawn := range d.Lanes {
		if err := look(fmt.Sprintf("lane %d", id), drawn, `SELECT count(*) FROM kuberewind.record_deltas`+within+` AND object_id = $3`, d.From, d.To, id); err != nil {
			return 0, 0, err
		}
	}
	return recorded, lost, nil
}
