// Package nearby lists the changes around an object before an instant: of the object, of its owners, and of linked objects.
//
// A person searches this list for a cause. It does not prove one.
//
// # Which changes it reads
//
//   - Changes of spec, data, labels and similar fields, creations and deletions, in the object's namespace and of objects without
//     a namespace.
//   - No change of an object that has an owner: controllers made it. The object itself and its owners count, even if they have owners.
//
// # What is linked
//
// One object names another one if the other's name is a word in it. The package knows no kinds, so this works for custom
// resources, too. Links go over one more object: the Role of a RoleBinding that names the ServiceAccount, or the definition of
// a custom resource that names the object. A name that is a common word may link too much. A selector links nothing if its
// labels are not the object's.
//
// # Order
//
// First come objects that a message in the status of the object, of its owners or of their objects names, such as a quota. Then come the newest changes.
// Changes of metadata alone come last.
//
// If changes may be missing after the newest linked one, the answer says so in Unknown: no change may then count as the cause.
package nearby

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/changes"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/command"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// Back is how far an answer looks back, unless the query says otherwise.
const Back = time.Hour

// These limits bound the lists of an answer. The answer also has the total numbers.
const (
	mostRows   = 200
	mostOthers = 100
)

// A Query asks for the changes around an object before an instant.
type Query struct {
	Name    find.Name
	At      history.Instant
	Back    time.Duration
	Cluster string // for the command; "" if there is only one
}

// An Answer lists the changes. Times are milliseconds since 1970.
type Answer struct {
	lack.Answer
	Object      find.Ref      `json:"object"`
	From        int64         `json:"from"`
	To          int64         `json:"to"`
	Rows        []Row         `json:"rows"`
	RowsTotal   int           `json:"rowsTotal"`
	Others      []changes.Row `json:"others"` // the newest changes without a link
	OthersTotal int           `json:"othersTotal"`
	Unknown     string        `json:"unknown,omitempty"` // why no row may count as the cause
	Command     string        `json:"command"`           // all changes of the namespace
}

// A Row is a change of a linked object.
type Row struct {
	changes.Row
	Link string `json:"link"` // how it is linked

	rank int
}

// A Finder finds the changes.
type Finder struct {
	Record   *history.Record
	Reader   *marks.Reader
	Patience time.Duration
}

// changed lists the classes of changes that people can make.
var changed = []class.Class{class.Changed, class.Added, class.Deleted}

// Find returns the changes.
func (f *Finder) Find(ctx context.Context, q Query, now time.Time) (*Answer, error) {
	v, err := find.At(ctx, f.Record, q.Name, q.At)
	if err != nil {
		return nil, err
	}
	streams, err := f.Record.Streams(ctx)
	if err != nil {
		return nil, err
	}
	w := ask.Window{From: v.Point.Time.Add(-q.Back), To: v.Point.Time.Add(time.Millisecond)}
	line, _ := command.Of(q.Cluster, "log", &ask.Filter{Namespaces: namespacesOf(v.Life.Namespace)})
	a := &Answer{
		Object: find.RefOf(v.Life), From: w.From.UnixMilli(), To: w.To.UnixMilli(), Rows: []Row{}, Others: []changes.Row{},
		Command: line.Time("--since", w.From).Time("--until", w.To).String(),
	}
	rows, err := f.rows(ctx, a, streams, w, now)
	if err != nil {
		return nil, err
	}
	k, err := f.kin(ctx, a, &v, clusterScoped(streams), rows)
	if err != nil {
		return nil, err
	}
	if err := f.link(ctx, a, k, rows, v.Point.Seq); err != nil {
		return nil, err
	}
	gaps, err := f.Record.Completeness().Gaps(ctx, history.Scope{})
	if err != nil {
		return nil, err
	}
	a.explainUnknown(gaps, w)
	a.RowsTotal = len(a.Rows)
	a.Rows = a.Rows[:min(len(a.Rows), mostRows)]
	return a, nil
}

func namespacesOf(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{namespace}
}

func clusterScoped(streams []history.Stream) (found []*history.Stream) {
	for i := range streams {
		if !streams[i].Namespaced {
			found = append(found, &streams[i])
		}
	}
	return found
}

// rows returns the changes of the namespace, and of objects without a namespace.
func (f *Finder) rows(ctx context.Context, a *Answer, streams []history.Stream, w ask.Window, now time.Time) ([]changes.Row, error) {
	var resources []string
	for _, s := range clusterScoped(streams) {
		resources = append(resources, s.GroupResource().String())
	}
	filters := []ask.Filter{{Resources: slices.Compact(slices.Sorted(slices.Values(resources))), Classes: changed}}
	if a.Object.Namespace != "" {
		filters = append(filters, ask.Filter{Namespaces: []string{a.Object.Namespace}, Classes: changed})
	}
	lister := changes.Lister{Record: f.Record, Reader: f.Reader, Patience: f.Patience}
	var rows []changes.Row
	for _, filter := range filters {
		part, err := lister.List(ctx, changes.Query{Window: w, Limit: changes.MostLimit, Filter: filter}, now)
		if err != nil {
			return nil, err
		}
		rows = append(rows, part.Rows...)
		if part.Next != "" {
			until := w.To
			if n := len(part.Rows); n > 0 {
				until = time.UnixMilli(part.Rows[n-1].Time).UTC()
			}
			part.Incomplete = append(part.Incomplete, lack.NotCounted(w.From, until))
		}
		a.join(&part.Answer)
	}
	slices.SortFunc(rows, func(x, y changes.Row) int { return cmp.Compare(y.Seq, x.Seq) })
	return rows, nil
}

// join adds what another part of the answer lacks.
func (a *Answer) join(part *lack.Answer) {
	a.Seq, a.Revision = part.Seq, part.Revision
	for _, l := range part.Incomplete {
		if !slices.ContainsFunc(a.Incomplete, func(known lack.Lack) bool { return known.Kind == l.Kind && known.Text == l.Text }) {
			a.Incomplete = append(a.Incomplete, l)
		}
	}
}

// link divides the changes into linked ones and others.
func (f *Finder) link(ctx context.Context, a *Answer, k *kin, rows []changes.Row, seq int64) error {
	named, err := f.namedBy(ctx, a, rows, seq, k.known)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		of := named[r.UID]
		if of == nil || len(of.owners) > 0 && !k.above(r.UID) {
			continue
		}
		link, strong := k.link(r, of)
		switch {
		case link != "":
			a.Rows = append(a.Rows, Row{Row: *r, Link: link, rank: rank(r, strong)})
		case len(a.Others) < mostOthers:
			a.Others = append(a.Others, *r)
			a.OthersTotal++
		default:
			a.OthersTotal++
		}
	}
	slices.SortStableFunc(a.Rows, func(x, y Row) int { return cmp.Compare(x.rank, y.rank) })
	return nil
}

// rank returns the place of a change in the order.
func rank(r *changes.Row, strong bool) int {
	wanted := r.Class != class.Changed
	for _, c := range r.Changes {
		wanted = wanted || !strings.HasPrefix(c.Path, "/metadata/") && !strings.HasPrefix(c.Path, "/status")
	}
	switch {
	case !wanted:
		return 2
	case strong:
		return 0
	}
	return 1
}

// explainUnknown sets Unknown if changes may be missing after the newest linked one. A change that a list found has no time
// of its own.
func (a *Answer) explainUnknown(gaps []history.Gap, w ask.Window) {
	after := w.From
	for i := range a.Rows {
		if r := &a.Rows[i]; r.rank < 2 && r.Type != delta.Sync && time.UnixMilli(r.Time).After(after) {
			after = time.UnixMilli(r.Time)
		}
	}
	var touching []*history.Gap
	for i := range gaps {
		if matters(&gaps[i], after, w.To) {
			touching = append(touching, &gaps[i])
		}
	}
	if len(touching) > 0 {
		a.Unknown = missing(touching)
		return
	}
	for _, l := range a.Incomplete {
		if (l.Kind == lack.Pruned || l.Kind == lack.Unread) && (l.To == nil || *l.To > after.UnixMilli()) {
			a.Unknown = l.Text + " What came before the instant is not known."
			return
		}
	}
}

// matters reports whether changes that would be rows may be missing between two times.
func matters(g *history.Gap, from, to time.Time) bool {
	quiet := g.Stream == nil || silent(g.Stream) || g.Outcome == delta.OutcomeResumed
	return !quiet && !g.FromAt.IsZero() && g.FromAt.Before(to) && (g.ToAt.IsZero() || g.ToAt.After(from))
}

// missing describes at least one gap.
func missing(gaps []*history.Gap) string {
	one, others := gaps[0], ""
	if n := len(gaps) - 1; n > 0 {
		others = fmt.Sprintf(" and %d other resources", n)
	}
	until := "now"
	if !one.ToAt.IsZero() {
		until = one.ToAt.UTC().Format(time.TimeOnly)
	}
	return fmt.Sprintf("Changes of %s%s from %s to %s may be missing (%s): what came before the instant is not known.",
		one.Stream, others, one.FromAt.UTC().Format(time.TimeOnly), until, one.Cause)
}

// ignored lists resources that links and gaps ignore: controllers make almost all of their changes.
var ignored = []string{"events", "leases", "endpointslices", "endpoints"}
