package timeline

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// The measured quantities of the server.
const (
	whole95 = "p95 to the whole"
	first95 = "p95 of the first answer"
	median  = "median to the whole"
	answers = "answers each"
	packed  = "gzipped"
	used    = "CPU of the server"
)

var counted = []measure.Quantity{
	{Name: whole95, Unit: "ms"}, {Name: first95, Unit: "ms"}, {Name: median, Unit: "ms"}, {Name: answers, Unit: "sent"}, {Name: packed, Unit: "bytes each"}, {Name: used, Unit: "ms each"},
}

// measured asks some questions, and sums up how that went. It does not count what PostgreSQL uses.
func (b *bench) measured(ask func() ([]asking, error)) (measure.Values, error) {
	before, err := measure.CPUOf(b.server.PID())
	if err != nil {
		return nil, err
	}
	all, err := ask()
	if err != nil {
		return nil, err
	}
	after, err := measure.CPUOf(b.server.PID())
	v := values(all)
	v[used] = millis(after-before) / float64(len(all))
	return v, err
}

func values(all []asking) measure.Values {
	var first, whole []float64
	sent, size := 0, 0
	for _, a := range all {
		first, whole = append(first, millis(a.first)), append(whole, millis(a.whole))
		sent, size = sent+a.answers, size+a.size
	}
	n := float64(len(all))
	return measure.Values{whole95: percentile(whole, 95), first95: percentile(first, 95), median: measure.Median(whole), answers: float64(sent) / n, packed: float64(size) / n}
}

// files are those of the page.
var files = []string{"", "app.js", "app.css", "icon.svg"}

// bundle is what a browser loads before it has any data.
func (b *bench) bundle() measure.Experiment {
	const size = "files of the page"
	way := measure.Way{Name: "the page", Run: func(ctx context.Context, _ int) (measure.Values, error) {
		sum := 0
		for _, file := range files {
			text, err := b.client.read(ctx, http.MethodGet, b.served.Page+file, "")
			if err != nil {
				return nil, err
			}
			sum += len(text)
		}
		return measure.Values{size: float64(sum) / 1024}, nil
	}}
	return b.experiment("page", "The page, gzipped and not minified", []measure.Quantity{{Name: size, Unit: "KiB"}}, []measure.Way{way}, limit{"the page", size, 150, 0})
}

// bars is how many a strip has at least: one for each 12 pixels of 1,200.
const bars = "100"

// of asks one question for each window of a round.
func (b *bench) of(n named, ask func(ctx context.Context, w window, filter []string) (asking, error)) measure.Way {
	return measure.Way{Name: n.name, Run: func(ctx context.Context, round int) (measure.Values, error) {
		return b.measured(func() (all []asking, err error) {
			for _, w := range b.subject.windows(b.Report.Seed, round) {
				a, err := ask(ctx, w, n.filter)
				if err != nil {
					return nil, fmt.Errorf("%s to %s: %w", w.from.Format(time.RFC3339), w.to.Format(time.RFC3339), err)
				}
				all = append(all, a)
			}
			return all, nil
		})
	}}
}

// strips are the strips that counts can be kept for; the measure waits for all of each.
func (b *bench) strips() measure.Experiment {
	var ways []measure.Way
	var limits []limit
	for _, n := range b.subject.columns() {
		ways = append(ways, b.of(n, func(ctx context.Context, w window, filter []string) (asking, error) {
			return b.client.wholly(ctx, "strip", w.query(append([]string{"bars", bars}, filter...)...))
		}))
		limits = append(limits, limit{n.name, whole95, 100, 40})
	}
	return b.experiment("strip", "A strip, at any width", counted, ways, limits...)
}

// slices are first answers that need a look at each delta.
func (b *bench) slices() measure.Experiment {
	var ways []measure.Way
	var limits []limit
	for _, n := range b.subject.others() {
		ways = append(ways, b.of(n, func(ctx context.Context, w window, filter []string) (asking, error) {
			return b.client.once(ctx, "strip", w.query(append([]string{"bars", bars}, filter...)...))
		}))
		limits = append(limits, limit{n.name, first95, 300, 0})
	}
	return b.experiment("slice", "The first slice of a strip with another filter", counted, ways, limits...)
}

const (
	// width is that of the canvas of lanes, in pixels; changes that are nearer than apart are one mark.
	width, apart = 950, 20
	// onScreen are the lanes whose ticks the page asks for: the visible ones and a few more.
	onScreen = 60
)

// ticksOf is the page's question for the ticks of lanes: the window, and half of it on both sides.
func ticksOf(w window, lanes []lane) url.Values {
	step := time.Duration(math.Ceil(w.to.Sub(w.from).Seconds()/width*apart)) * time.Second
	half := w.to.Sub(w.from) / 2
	wide := window{w.from.Add(-half).Truncate(step), w.to.Add(half).Truncate(step).Add(step)}
	ids := make([]string, 0, onScreen)
	for _, l := range lanes[:min(len(lanes), onScreen)] {
		ids = append(ids, strconv.FormatInt(l.ID, 10))
	}
	return wide.query("lanes", strings.Join(ids, ","), "stepMs", strconv.FormatInt(step.Milliseconds(), 10))
}

// lanesOf is the page's question for lanes.
func lanesOf(w window) url.Values {
	return w.query("limit", "100", "group", "owner", "sort", "changes")
}

// screens are the lanes of a window, and then the ticks of those on the screen: the first answers, which are what is seen.
func (b *bench) screens() measure.Experiment {
	screen := func(ctx context.Context, w window, _ []string) (asking, error) {
		found, a, err := b.client.ask(ctx, "lanes", lanesOf(w))
		if err != nil || len(found.Lanes) == 0 {
			return a, err
		}
		ticks, err := b.client.once(ctx, "ticks", ticksOf(w, found.Lanes))
		return a.and(ticks), err
	}
	name := named{name: "lanes, then ticks"}
	return b.experiment("lanes", "Lanes and ticks of a screen", counted, []measure.Way{b.of(name, screen)}, limit{name.name, whole95, 150, 60})
}

// comparisons are of two instants of the whole cluster.
func (b *bench) comparisons() measure.Experiment {
	of := func(w window) url.Values {
		return url.Values{"a": {strconv.FormatInt(w.from.UnixMilli()+1, 10)}, "b": {strconv.FormatInt(w.to.UnixMilli(), 10)}}
	}
	way := measure.Way{Name: "two instants", Run: func(ctx context.Context, round int) (measure.Values, error) {
		return b.measured(func() (all []asking, err error) {
			for i, w := range b.subject.windows(b.Report.Seed, round) {
				if i%places > 0 {
					continue
				}
				a, err := b.client.once(ctx, "compare", of(w))
				if err != nil {
					return nil, err
				}
				all = append(all, a)
			}
			return all, nil
		})
	}}
	return b.experiment("compare", "Two instants of the cluster, compared", counted, []measure.Way{way}, limit{way.Name, whole95, 1500, 500})
}

// objects are answers about one object, and about what is wrong in the cluster: the server's part of what the browser waits for.
func (b *bench) objects() measure.Experiment {
	const object, related, trouble = "an object", "what belongs to an object", "the list of troubles"
	of := func(name string, ask func(ctx context.Context, w window) ([]asking, error)) measure.Way {
		return measure.Way{Name: name, Run: func(ctx context.Context, round int) (measure.Values, error) {
			return b.measured(func() ([]asking, error) {
				all := b.subject.windows(b.Report.Seed, round)
				found, err := ask(ctx, all[len(all)/2])
				if err == nil && len(found) == 0 {
					err = fmt.Errorf("%w: no object changed", errAnswer)
				}
				return found, err
			})
		}}
	}
	at := func(w window) string { return strconv.FormatInt(w.to.UnixMilli()-1, 10) }
	each := func(shape string) func(context.Context, window) ([]asking, error) {
		return func(ctx context.Context, w window) (all []asking, err error) {
			found, _, err := b.client.ask(ctx, "lanes", lanesOf(w))
			for _, l := range found.Lanes[:min(len(found.Lanes), onScreen)] {
				a, err := b.client.once(ctx, shape, url.Values{"uid": {l.UID}, "at": {at(w)}})
				if err != nil {
					return nil, err
				}
				all = append(all, a)
			}
			return all, err
		}
	}
	return b.experiment("object", "An object with its YAML and what changed, and what is in trouble", counted, []measure.Way{
		of(object, each("object")),
		of(related, each("related")),
		of(trouble, func(ctx context.Context, w window) ([]asking, error) {
			a, err := b.client.once(ctx, "trouble", url.Values{"at": {at(w)}})
			return []asking{a}, err
		}),
	})
}
