package api

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// Number is that of the measure in the methodology's table.
const Number = "14"

// Measure compares everything on so many Pods.
func Measure(ctx context.Context, run *measure.Run, pods int) error {
	return run.OnServer(ctx, measure.ServerOptions{}, func(database *measure.Server) error {
		return inWorld(ctx, run, database, pods, func(w *world) error {
			if err := run.Do(ctx, w.heaps()); err != nil {
				return err
			}
			for _, protocol := range protocols {
				for _, e := range []measure.Experiment{w.lists(protocol), w.namespaces(protocol), w.initial(protocol), w.gets(protocol), w.tables(protocol), w.fanOut(protocol)} {
					if err := run.Do(ctx, e); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// A limit is what a ratio of ours to kube-apiserver's may be at most; 0 is none.
type limit struct{ must, aim float64 }

// asked is an experiment with one set of questions.
type asked struct {
	name, title string
	protocol    string
	questions   func(round int) []question
	kept        *question // what has been asked before a warm answer; nil if that is a list of all Pods
	warm        limit
	cold        *limit // nil if it is not measured
	end         *limit // of the last instant of the record; nil if it is not measured
}

// short are the versions of HTTP in the names of experiments.
var short = map[string]string{http1: "http1", http2: "http2"}

const tolerance = 0.05 // of the lengths of two answers

// A sameLength compares the lengths of answers with that of the first.
type sameLength struct{ first float64 }

func (s *sameLength) check(name string, values measure.Values) error {
	if s.first == 0 {
		s.first = values[length]
	}
	if off := math.Abs(values[length]/s.first - 1); off > tolerance {
		return fmt.Errorf("%w: the length is %.0f of %s, and was %.0f of another", errAnswer, values[length], name, s.first)
	}
	return nil
}

func (w *world) experiment(a asked) measure.Experiment {
	e := measure.Experiment{
		Name: a.name + "-" + short[a.protocol], Title: a.title + ", " + a.protocol,
		Data: fmt.Sprintf("generated: %s Pods", measure.Number(float64(len(w.pods)))), Quantities: quantities, WarmUp: true,
	}
	same := &sameLength{}
	add := func(name string, t *target, before func(context.Context) error) {
		e.Ways = append(e.Ways, measure.Way{Name: name, Run: func(ctx context.Context, round int) (measure.Values, error) {
			if before != nil {
				if err := before(ctx); err != nil {
					return nil, err
				}
			}
			values, err := t.measured(ctx, a.questions(max(round, 0)))
			if err != nil {
				return nil, err
			}
			return values, same.check(name, values)
		}})
	}
	compare := func(of string, l limit) {
		e.Compare = append(e.Compare, measure.Comparison{
			Number: Number, What: e.Title + ": " + of, Quantity: onTheClock, Of: of, To: kubeAPIServer, AtMost: l.must, Aim: l.aim,
		})
	}
	ours := w.ours[a.protocol]
	add(kuberewind, ours, func(ctx context.Context) error {
		_, err := ours.ask(ctx, *cmp.Or(a.kept, &listed))
		return err
	})
	compare(kuberewind, a.warm)
	if a.cold != nil {
		add(kuberewindCold, ours, ours.cold)
		compare(kuberewindCold, *a.cold)
	}
	if a.end != nil {
		last := *ours
		add(kuberewindEnd, &last, func(ctx context.Context) error { return w.aimAtEnd(ctx, &last) })
		compare(kuberewindEnd, *a.end)
	}
	add(kubeAPIServer, w.theirs[a.protocol], nil)
	return e
}

// lists are of all Pods.
func (w *world) lists(protocol string) measure.Experiment {
	return w.experiment(asked{
		name: "api-list", title: "LIST of all Pods", protocol: protocol, questions: always(listed), warm: limit{must: 1, aim: 0.3}, cold: &limit{must: 2},
	})
}

func (w *world) tables(protocol string) measure.Experiment {
	q := question{path: listed.path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
	return w.experiment(asked{name: "api-table", title: "LIST as a Table", protocol: protocol, questions: always(q), warm: limit{must: 3, aim: 1}})
}

// namespaces are lists of the largest one.
func (w *world) namespaces(protocol string) measure.Experiment {
	q := question{path: "/api/v1/namespaces/" + largestNamespace(w.pods) + "/pods"}
	return w.experiment(asked{name: "api-namespace", title: "LIST of a namespace", protocol: protocol, questions: always(q, q, q, q, q), kept: &q, warm: limit{must: 1}, cold: &limit{}})
}

// initial is what an informer asks first: all objects as events, up to the bookmark that ends them.
func (w *world) initial(protocol string) measure.Experiment {
	q := question{
		path:   listed.path + "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		enough: func() *search { return searchFor("k8s.io/initial-events-end", 1) },
	}
	return w.experiment(asked{name: "api-watchlist", title: "WatchList of all Pods", protocol: protocol, questions: always(q), warm: limit{must: 1}})
}

// getsInRound is how many Pods are read one after the other.
const getsInRound = 200

func (w *world) gets(protocol string) measure.Experiment {
	questions := func(round int) (all []question) {
		for i := range getsInRound {
			p := w.pods[(round*getsInRound+i*97)%len(w.pods)]
			all = append(all, question{path: "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name})
		}
		return all
	}
	return w.experiment(asked{name: "api-get", title: "GET of a Pod", protocol: protocol, questions: questions, warm: limit{must: 1.5}, cold: &limit{}, end: &limit{must: 1.5}})
}

func always(all ...question) func(int) []question { return func(int) []question { return all } }

// heaps compares what the Pods take in memory.
func (w *world) heaps() measure.Experiment {
	const with, without, ofPods = "heap with the Pods", "without", "of a Pod"
	e := measure.Experiment{
		Name: "api-heap", Title: "Heap that the Pods take", Data: fmt.Sprintf("generated: %s Pods", measure.Number(float64(len(w.pods)))), Rounds: 1,
		Quantities: []measure.Quantity{{Name: with, Unit: "bytes"}, {Name: without, Unit: "bytes"}, {Name: ofPods, Unit: "bytes"}},
		Compare: []measure.Comparison{
			{Number: Number, What: "heap of the Pods", Quantity: ofPods, Of: kuberewind, To: kubeAPIServer, AtMost: 0.3},
		},
	}
	add := func(t *target, before func(context.Context) (float64, error)) {
		e.Ways = append(e.Ways, measure.Way{Name: t.name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			empty, err := before(ctx)
			if err != nil {
				return nil, err
			}
			if _, err := t.ask(ctx, listed); err != nil {
				return nil, err
			}
			full, err := t.heap(ctx)
			return measure.Values{with: full, without: empty, ofPods: (full - empty) / float64(len(w.pods))}, err
		}})
	}
	ours := w.ours[http1]
	add(ours, func(ctx context.Context) (float64, error) {
		if err := ours.cold(ctx); err != nil {
			return 0, err
		}
		if _, err := ours.ask(ctx, question{path: "/api/v1/namespaces"}); err != nil {
			return 0, err
		}
		return ours.heap(ctx)
	})
	add(w.theirs[http1], func(context.Context) (float64, error) { return w.before, nil })
	return e
}
