package timeline

import (
	"context"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// inBrowser is a way whose values come from the browser, by their names.
func (b *bench) inBrowser(t *tab, name, figure string, options any) measure.Way {
	return measure.Way{Name: name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
		var values measure.Values
		return values, t.take(ctx, &b.served, figure, options, &values)
	}}
}

// firstViews are of a server that has just been started, in a browser at rest.
func (b *bench) firstViews(t *tab) measure.Experiment {
	const view, trouble = "strip and 40 lanes", "list of troubles"
	opened := b.inBrowser(t, "from cold", "first", nil)
	way := measure.Way{Name: opened.Name, Run: func(ctx context.Context, round int) (measure.Values, error) {
		if err := b.serve(ctx); err != nil {
			return nil, err
		}
		return opened.Run(ctx, round)
	}}
	return b.experiment("first", "The first view", []measure.Quantity{{Name: view, Unit: "ms"}, {Name: trouble, Unit: "ms"}}, []measure.Way{way},
		limit{way.Name, view, 1500, 700}, limit{way.Name, trouble, 3000, 0})
}

// frames are those of a person who pans and zooms without a rest.
func (b *bench) frames(t *tab) measure.Experiment {
	const frame, script = "p95 of a frame", "p95 of the script of a move"
	way := b.inBrowser(t, "pan and zoom", "frames", nil)
	return b.experiment("frames", "Frames while panning and zooming", []measure.Quantity{{Name: frame, Unit: "ms"}, {Name: script, Unit: "ms"}}, []measure.Way{way},
		limit{way.Name, frame, 33, 17})
}

// clicks open objects, one after the other.
func (b *bench) clicks(t *tab) measure.Experiment {
	const changed, yaml = "p95 with what changed", "p95 with the YAML"
	way := b.inBrowser(t, "click to paint", "clicks", nil)
	return b.experiment("click", "An object, from the click to the paint", []measure.Quantity{{Name: changed, Unit: "ms"}, {Name: yaml, Unit: "ms"}}, []measure.Way{way},
		limit{way.Name, changed, 150, 60}, limit{way.Name, yaml, 150, 60})
}

// scrubs are of one tab that is used for minutes.
func (b *bench) scrubs(t *tab) measure.Experiment {
	const heap, resident, moves = "heap", "resident memory of the tab", "drags, steps and clicks"
	way := b.inBrowser(t, "at the end", "scrub", struct{ Seconds float64 }{b.record.Scrub.Seconds()})
	e := b.experiment("scrub", fmt.Sprintf("The tab after %s of scrubbing", b.record.Scrub.Round(time.Second)), []measure.Quantity{
		{Name: heap, Unit: "MB"}, {Name: resident, Unit: "MB"}, {Name: moves, Unit: "made"},
	}, []measure.Way{way}, limit{way.Name, heap, 200, 0})
	e.WarmUp, e.Rounds = false, 1
	return e
}
