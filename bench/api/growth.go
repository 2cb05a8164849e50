package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/bench/measure"
)

// A Record is one whose Pods are listed by a server that has nothing in memory.
type Record struct {
	Name string // such as 300,000 deltas
	URL  string
	At   func(round int) (seq int64) // the instant of a round
}

// Growth compares the first LIST of an instant out of a small record with that out of a large one.
func Growth(ctx context.Context, run *measure.Run, small, large Record) (err error) {
	e := measure.Experiment{
		Name: "api-growth", Title: "First LIST of an instant, by the length of the record", Data: "generated; LIST of all Pods, " + http1, Quantities: quantities, WarmUp: true,
		Compare: []measure.Comparison{{
			Number: Number, What: "first LIST out of " + large.Name + " to out of " + small.Name, Quantity: onTheClock, Of: large.Name, To: small.Name, AtMost: 1.3,
		}},
	}
	for _, r := range []Record{small, large} {
		var s served
		p, err := measure.Begin(ctx, serverChild, job{Database: r.URL}, &s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.End()) }()
		t := &target{name: r.Name, origin: s.URL, token: s.Token, pid: p.PID, client: newClient(http1, s.CA)}
		e.Ways = append(e.Ways, measure.Way{Name: r.Name, Run: func(ctx context.Context, round int) (measure.Values, error) {
			t.url = s.URL + apiserver.Path(s.UID, r.At(round))
			if err := t.cold(ctx); err != nil {
				return nil, err
			}
			values, err := t.measured(ctx, []question{listed})
			if err == nil && values[length] < 1e6 {
				err = fmt.Errorf("%w: the Pods of %s are %.0f bytes: too few", errAnswer, r.Name, values[length])
			}
			return values, err
		}})
	}
	return run.Do(ctx, e)
}
