package timeline

import (
	"context"
	"math"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/between"
	"github.com/kuberewind/kuberewind/timeline/internal/blamed"
	"github.com/kuberewind/kuberewind/timeline/internal/changes"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/nearby"
	"github.com/kuberewind/kuberewind/timeline/internal/object"
	"github.com/kuberewind/kuberewind/timeline/internal/related"
	"github.com/kuberewind/kuberewind/timeline/internal/states"
	"github.com/kuberewind/kuberewind/timeline/internal/step"
	"github.com/kuberewind/kuberewind/timeline/internal/storyline"
	"github.com/kuberewind/kuberewind/timeline/internal/troubles"
)

// named lists the parameters that name an object.
var named = []string{"uid", "resource", "namespace", "name"}

// ofObjects returns the requests for single objects and single changes.
func (h *Handler) ofObjects() map[string]shape {
	return map[string]shape{
		"object":  {append([]string{"at"}, named...), h.object},
		"related": {append([]string{"at"}, named...), h.related},
		"step":    {append([]string{"seq", "direction", "scope", "uid"}, ask.FilterNames...), h.step},
		"states":  {[]string{"lanes", "from", "to"}, h.states},
		"changes": {append([]string{"from", "to", "cursor", "limit"}, ask.FilterNames...), h.changes},
		"trouble": {[]string{"at"}, h.trouble},
		"blame":   {append([]string{"at"}, named...), h.blame},
		"compare": {[]string{"a", "b", "uid", "namespace", "resource", "name", "label", "limit", "cursor"}, h.compare},
		"story":   {append([]string{"from", "to"}, named...), h.story},
		"nearby":  {append([]string{"at", "back"}, named...), h.nearby},
	}
}

// commandCluster returns the cluster name that a command needs, "" if there is only one cluster.
func (h *Handler) commandCluster(c *cluster) string {
	if len(h.clusters) > 1 {
		return c.Name
	}
	return ""
}

func nameOf(v ask.Values) (n find.Name, err error) {
	for _, name := range []string{"resource", "namespace"} {
		if len(v.All(name)) > 1 {
			return n, ask.Bad("%s appears %d times: give it once", name, len(v.All(name)))
		}
	}
	return find.Name{UID: v.Text("uid"), Resource: v.Text("resource"), Namespace: v.Text("namespace"), Name: v.Text("name")}, nil
}

// nameAt reads the object and the instant of a request.
func nameAt(v ask.Values) (n find.Name, at history.Instant, err error) {
	if at, err = v.Instant("at"); err != nil {
		return n, at, err
	}
	n, err = nameOf(v)
	return n, at, err
}

func (h *Handler) object(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	name, at, err := nameAt(v)
	if err != nil {
		return nil, err
	}
	return object.Find(ctx, c.Record, object.Query{Name: name, At: at, Cluster: h.commandCluster(c)})
}

func (h *Handler) related(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	name, at, err := nameAt(v)
	if err != nil {
		return nil, err
	}
	return related.Find(ctx, c.Record, name, at)
}

func (h *Handler) step(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	filter, err := v.Filter()
	if err != nil {
		return nil, err
	}
	q := step.Query{Filter: filter, UID: v.Text("uid")}
	if q.Seq, err = v.Number("seq", 0, math.MaxInt64-1, -1); err != nil {
		return nil, err
	}
	if q.Direction, err = v.OneOf("direction", step.Next, step.Previous); err != nil {
		return nil, err
	}
	if q.Scope, err = v.OneOf("scope", step.Cluster, step.Object, step.Group); err != nil {
		return nil, err
	}
	switch {
	case q.Seq < 0:
		return nil, ask.Bad("seq is missing: give the seq to step from")
	case q.UID == "" && q.Scope != step.Cluster:
		return nil, ask.Bad("uid is missing: scope=%s is about one object", q.Scope)
	}
	finder := step.Finder{Record: c.Record, Reader: c.reader, Patience: h.patience}
	return finder.Find(ctx, q)
}

func (h *Handler) states(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	window, err := v.Window()
	if err != nil {
		return nil, err
	}
	ids, err := v.Numbers("lanes", states.MostLanes)
	if err != nil {
		return nil, err
	}
	return states.Find(ctx, c.Record, states.Query{Window: window, Lanes: ids}, h.now())
}

const defaultRows = 200

func (h *Handler) changes(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	window, filter, err := windowAndFilter(v)
	if err != nil {
		return nil, err
	}
	q := changes.Query{Window: window, Filter: filter, Cursor: v.Text("cursor"), Cluster: h.commandCluster(c)}
	if q.Limit, err = v.Number("limit", 1, changes.MostLimit, defaultRows); err != nil {
		return nil, err
	}
	lister := changes.Lister{Record: c.Record, Reader: c.reader, Patience: h.patience}
	return lister.List(ctx, q, h.now())
}

func (h *Handler) trouble(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	at, err := v.Instant("at")
	if err != nil {
		return nil, err
	}
	finder := troubles.Finder{Record: c.Record, Reader: c.reader, Kept: c.troubles, Patience: h.patience}
	return finder.Find(ctx, at)
}

const defaultDifferences = 500

func (h *Handler) compare(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	filter, err := v.Filter()
	if err != nil {
		return nil, err
	}
	if v.Text("a") == "" {
		return nil, ask.Bad("a is missing: give the instant to compare from, such as seq:1")
	}
	q := between.Query{Filter: filter, UID: v.Text("uid"), Cluster: h.commandCluster(c)}
	if q.A, err = v.Instant("a"); err != nil {
		return nil, err
	}
	if q.B, err = v.Instant("b"); err != nil {
		return nil, err
	}
	if q.Limit, err = v.Number("limit", 1, between.MostLimit, defaultDifferences); err != nil {
		return nil, err
	}
	if q.Cursor, err = v.Number("cursor", 0, math.MaxInt32, 0); err != nil {
		return nil, err
	}
	return between.Compare(ctx, c.Record, q)
}

func (h *Handler) blame(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	name, at, err := nameAt(v)
	if err != nil {
		return nil, err
	}
	return blamed.Find(ctx, c.Record, name, at, h.commandCluster(c))
}

func (h *Handler) story(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	window, err := v.Window()
	if err != nil {
		return nil, err
	}
	name, err := nameOf(v)
	if err != nil {
		return nil, err
	}
	return storyline.Read(ctx, c.Record, name, window, h.commandCluster(c), h.now())
}

// mostBack is a day: an older change is no longer near.
const mostBack = 24 * time.Hour

func (h *Handler) nearby(ctx context.Context, c *cluster, v ask.Values) (any, error) {
	name, at, err := nameAt(v)
	if err != nil {
		return nil, err
	}
	back, err := v.Number("back", 1, mostBack.Milliseconds(), nearby.Back.Milliseconds())
	if err != nil {
		return nil, err
	}
	finder := nearby.Finder{Record: c.Record, Reader: c.reader, Patience: h.patience}
	return finder.Find(ctx, nearby.Query{Name: name, At: at, Back: time.Duration(back) * time.Millisecond, Cluster: h.commandCluster(c)}, h.now())
}
