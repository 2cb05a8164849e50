package timeline

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/about"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/lanes"
	"github.com/kuberewind/kuberewind/timeline/internal/strip"
	"github.com/kuberewind/kuberewind/timeline/internal/ticks"
)

// all returns the requests, by the end of their path.
func (h *Handler) all() map[string]shape {
	window := []string{"from", "to"}
	filtered := func(more ...string) []string { return slices.Concat(window, more, ask.FilterNames) }
	shapes := map[string]shape{
		"meta":    {nil, h.meta},
		"tail":    {[]string{"after", "head"}, h.tail},
		"instant": {[]string{"at", "zone"}, h.instant},
		"strip":   {filtered("bars", "cursor"), h.strip},
		"lanes":   {filtered("sort", "group", "cursor", "limit"), h.lanes},
		"ticks":   {filtered("lanes", "stepMs", "cursor"), h.ticks},
	}
	maps.Copy(shapes, h.ofObjects())
	return shapes
}

func (h *Handler) tail(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	after, err := v.Number("after", 0, math.MaxInt64, 0)
	if err != nil {
		return nil, err
	}
	var known history.Head
	if text := v.Text("head"); text != "" {
		if known, err = history.ParseHead(text); err != nil {
			return nil, ask.Bad("head: %v", err)
		}
	}
	return about.After(ctx, c.Record, after, known)
}

// instant finds an instant. With a zone, the text is in the form that people type.
func (h *Handler) instant(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	read := v.Instant
	if v.Text("zone") != "" {
		read = func(name string) (history.Instant, error) { return v.Typed(name, h.now()) }
	}
	at, err := read("at")
	if err != nil {
		return nil, err
	}
	return about.Find(ctx, c.Record, at)
}

// mostBars is more than the width of a screen in pixels.
const mostBars = 4000

func (h *Handler) strip(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	window, filter, err := windowAndFilter(v)
	if err != nil {
		return nil, err
	}
	bars, err := v.Number("bars", 1, mostBars, ask.MinBars)
	if err != nil {
		return nil, err
	}
	counter := strip.Counter{Record: c.Record, Reader: c.reader, Patience: h.patience}
	return counter.Count(ctx, strip.Query{Window: window, Bars: bars, Filter: filter, Cursor: v.Text("cursor")}, h.now())
}

const defaultLanes = 40

// screen divides the patience for each request for lanes or ticks. A screen requests first lanes and then ticks, and
// repeats both to count further back.
const screen = 8

func (h *Handler) lanes(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	window, filter, err := windowAndFilter(v)
	if err != nil {
		return nil, err
	}
	q := lanes.Query{Window: window, Filter: filter, Cursor: v.Text("cursor")}
	if q.Sort, err = v.OneOf("sort", lanes.ByChanges, lanes.ByTrouble, lanes.ByName); err != nil {
		return nil, err
	}
	if q.Group, err = v.OneOf("group", lanes.ByOwner, lanes.ByNode, lanes.Flat); err != nil {
		return nil, err
	}
	if q.Limit, err = v.Number("limit", 1, lanes.MostLimit, defaultLanes); err != nil {
		return nil, err
	}
	finder := lanes.Finder{Record: c.Record, Reader: c.reader, Patience: h.patience / screen}
	return finder.Find(ctx, q, h.now())
}

func (h *Handler) ticks(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	window, filter, err := windowAndFilter(v)
	if err != nil {
		return nil, err
	}
	ids, err := v.Numbers("lanes", ticks.MostLanes)
	if err != nil {
		return nil, err
	}
	step, err := v.Number("stepMs", 0, (365 * 24 * time.Hour).Milliseconds(), 0)
	if err != nil {
		return nil, err
	}
	finder := ticks.Finder{Record: c.Record, Reader: c.reader, Patience: h.patience / screen}
	q := ticks.Query{Window: window, Lanes: ids, Step: time.Duration(step) * time.Millisecond, Filter: filter, Cursor: v.Text("cursor")}
	return finder.Find(ctx, q, h.now())
}

func windowAndFilter(v ask.Values) (ask.Window, ask.Filter, error) {
	window, err := v.Window()
	if err != nil {
		return window, ask.Filter{}, err
	}
	filter, err := v.Filter()
	return window, filter, err
}
