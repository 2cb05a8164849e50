package timeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// Number is that of the measure in the methodology's table.
const Number = "15"

// A Record is one that is measured.
type Record struct {
	URL  string
	Text string // which record it is
	Name string // in the names of experiments; "" of the first one
	// Scrub is for how long a person scrubs.
	Scrub time.Duration
}

// A bench measures one record.
type bench struct {
	*measure.Run
	record  Record
	subject *subject
	server  *measure.Running
	served  served
	client  *client
}

// Measure takes every figure of a record but that of [Commits]. It only reads.
func Measure(ctx context.Context, run *measure.Run, record Record) error {
	tab, err := newTab()
	if err != nil {
		return err
	}
	return inBench(ctx, run, record, func(b *bench) error {
		if err := b.asked(ctx); err != nil {
			return err
		}
		return b.seen(ctx, tab)
	})
}

// inBench serves a record, chooses what to ask about, and ends the server.
func inBench(ctx context.Context, run *measure.Run, record Record, use func(*bench) error) (err error) {
	b := &bench{Run: run, record: record}
	if b.subject, err = choose(ctx, record.URL); err != nil {
		return fmt.Errorf("choose what to ask about: %w", err)
	}
	if err := b.serve(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	return use(b)
}

// serve restarts the server, so that its memory is empty.
func (b *bench) serve(ctx context.Context) (err error) {
	if err := b.end(); err != nil {
		return err
	}
	if b.server, err = measure.Begin(ctx, serverChild, job{Database: b.record.URL}, &b.served); err != nil {
		return err
	}
	b.client, err = newClient(ctx, &b.served)
	return err
}

func (b *bench) end() (err error) {
	if b.client != nil {
		b.client.close()
	}
	if b.server != nil {
		err = b.server.End()
	}
	b.client, b.server = nil, nil
	return err
}

// asked are the figures of the server.
func (b *bench) asked(ctx context.Context) error {
	for _, e := range []measure.Experiment{b.bundle(), b.strips(), b.slices(), b.screens(), b.comparisons(), b.objects()} {
		if err := b.Do(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// seen are the figures of the browser.
func (b *bench) seen(ctx context.Context, t *tab) error {
	for _, e := range []measure.Experiment{b.firstViews(t), b.frames(t), b.clicks(t), b.left(t), b.scrubs(t)} {
		if err := b.Do(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// A limit is what a quantity of a way may be at most.
type limit struct {
	way, quantity string
	must, aim     float64 // 0 is none
}

// experiment is one whose ways are judged each by itself.
func (b *bench) experiment(name, title string, quantities []measure.Quantity, ways []measure.Way, limits ...limit) measure.Experiment {
	e := measure.Experiment{Name: "timeline-" + name, Title: title, Data: b.record.Text + ": " + b.subject.String(), Quantities: quantities, Ways: ways, WarmUp: true}
	if b.record.Name != "" {
		e.Name += "-" + b.record.Name
	}
	for _, l := range limits {
		e.Compare = append(e.Compare, measure.Comparison{
			Number: Number, What: title + ": " + l.way + ", " + l.quantity, Quantity: l.quantity, Of: l.way, By: measure.Alone, AtMost: l.must, Aim: l.aim,
		})
	}
	return e
}

// percentile is the smallest of some values that so many of a hundred do not exceed.
func percentile(of []float64, hundredths float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(int(math.Ceil(hundredths/100*float64(len(sorted))))-1, 0)]
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
