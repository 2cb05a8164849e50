package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/times"
)

// A sighting is a resource version that a stream had at a time.
type sighting struct {
	stream int32
	at     time.Time
	rv     string
}

// An etcdSurvey finds which streams share an etcd, from the resource versions in their lists and watches.
type etcdSurvey struct {
	view   *view // within a transaction
	extent Extent
}

// oneEtcd finds the streams with which a resource version can be compared. For a single resource it is always comparable.
// For several, oneEtcd must prove that one etcd numbers them. Two streams are tied if a sighting of one lies, in time and
// in number, between two sightings of the other. All streams that changed must be tied together in this way. A stream that
// has not changed since its list need not be tied: its state is the same for any resource version.
//
// count is the number of resources of the streams.
//
// I4: resource versions of different resources are compared only if this is established.
func (f *etcdSurvey) oneEtcd(ctx context.Context, streams []*Stream, gaps []Gap) (compared map[int32]bool, count int, err error) {
	compared = make(map[int32]bool, len(streams))
	resources := make(map[string]bool)
	for _, s := range streams {
		compared[s.ID] = true
		resources[s.GroupResource().String()] = true
	}
	if len(resources) == 1 {
		return compared, 1, nil
	}
	w, err := f.sightings(ctx, streams, gaps)
	if err != nil {
		return nil, 0, err
	}
	ties, changed := tied(streams, w.seen), w.changed
	for pair := range w.against {
		if ties.find(pair[0]) == ties.find(pair[1]) {
			return nil, 0, fmt.Errorf("%w: %s and %s are numbered by different etcds: name one resource, or the instant by its time or seq",
				ErrManyResources, named(streams, pair[0]), named(streams, pair[1]))
		}
	}
	groups := make(map[int32][]*Stream)
	largest := int32(0)
	for _, s := range streams {
		if changed[s.ID] {
			root := ties.find(s.ID)
			groups[root] = append(groups[root], s)
			if largest == 0 || len(groups[root]) > len(groups[largest]) {
				largest = root
			}
		}
	}
	if len(groups) > 1 {
		return nil, 0, fmt.Errorf("%w: it is not established that one etcd serves %s: name one resource, or the instant by its time or seq",
			ErrManyResources, odd(groups, largest))
	}
	for _, s := range streams {
		compared[s.ID] = len(groups) == 0 || ties.find(s.ID) == largest
	}
	return compared, len(resources), nil
}

// tied joins two streams if a sighting of one lies between two sightings of the other.
func tied(streams []*Stream, seen map[int32][]sighting) ties {
	t := newTies(streams)
	for _, a := range streams {
		for _, b := range streams {
			if a.ID != b.ID && t.find(a.ID) != t.find(b.ID) && between(seen[a.ID], seen[b.ID]) {
				t.join(a.ID, b.ID)
			}
		}
	}
	return t
}

// etcds returns a number for each stream. Streams share a number only if it is established that one etcd serves them. If
// the numbers in a tied group contradict each other, each resource of that group gets its own number.
func (f *etcdSurvey) etcds(ctx context.Context, streams []*Stream, gaps []Gap) (map[int32]int32, error) {
	w, err := f.sightings(ctx, streams, gaps)
	if err != nil {
		return nil, err
	}
	ties, etcds, alone := tied(streams, w.seen), make(map[int32]int32, len(streams)), make(map[int32]bool)
	for pair := range w.against {
		if ties.find(pair[0]) == ties.find(pair[1]) {
			alone[ties.find(pair[0])] = true
		}
	}
	first := make(map[schema.GroupResource]int32)
	for _, s := range streams {
		etcds[s.ID] = ties.find(s.ID)
		if !alone[etcds[s.ID]] {
			continue
		}
		if first[s.GroupResource()] == 0 {
			first[s.GroupResource()] = -s.ID // No root is negative.
		}
		etcds[s.ID] = first[s.GroupResource()]
	}
	return etcds, nil
}

func odd(groups map[int32][]*Stream, largest int32) string {
	var names []string
	for root, group := range groups {
		if root != largest {
			names = append(names, group[0].GroupResource().String())
		}
	}
	slices.Sort(names)
	return groups[largest][0].GroupResource().String() + " and " + strings.Join(names, ", ")
}

// between reports whether a sighting of the first stream lies between an earlier and a later one of the second.
func between(inner, outer []sighting) bool {
	for _, i := range inner {
		below, above := false, false
		for _, o := range outer {
			below = below || (!o.at.After(i.at) && !delta.Precedes(i.rv, o.rv))
			above = above || (!o.at.Before(i.at) && !delta.Precedes(o.rv, i.rv))
		}
		if below && above {
			return true
		}
	}
	return false
}

func named(streams []*Stream, id int32) string {
	i := slices.IndexFunc(streams, func(s *Stream) bool { return s.ID == id })
	return streams[i].GroupResource().String()
}

// A watcher reads the sightings of lists and watches in the order of time.
type watcher struct {
	seen    map[int32][]sighting
	changed map[int32]bool    // streams of which a watch may have shown a change
	against map[[2]int32]bool // pairs of streams whose numbers contradict each other
	earlier map[int32]uint64  // highest number of a stream that was seen at least watchSkew ago
	recent  []sighting        // seen since then
	numbers []uint64          // of recent
}

// watchSkew is the largest delay expected between two watches of one etcd. If one etcd numbers both streams, numbers that
// one watch showed that long ago do not exceed the numbers that the other shows now.
const watchSkew = 30 * time.Second

func (w *watcher) list(id int32, at time.Time, rv string) {
	if delta.Ordered(rv) {
		w.seen[id] = append(w.seen[id], sighting{stream: id, at: at, rv: rv})
	}
}

func (w *watcher) watch(s sighting) {
	number, err := strconv.ParseUint(s.rv, 10, 64)
	if err != nil {
		return
	}
	w.changed[s.stream] = true
	w.seen[s.stream] = kept(w.seen[s.stream], s)
	for len(w.recent) > 0 && s.at.Sub(w.recent[0].at) > watchSkew {
		old := w.recent[0].stream
		w.earlier[old] = max(w.earlier[old], w.numbers[0])
		w.recent, w.numbers = w.recent[1:], w.numbers[1:]
	}
	for other, highest := range w.earlier {
		if highest > number && other != s.stream {
			w.against[[2]int32{other, s.stream}] = true
		}
	}
	w.recent, w.numbers = append(w.recent, s), append(w.numbers, number)
}

// maxSeen bounds the sightings of a stream. At the bound, a new sighting replaces the last one.
const maxSeen = 12

func kept(seen []sighting, s sighting) []sighting {
	if len(seen) < maxSeen {
		return append(seen, s)
	}
	seen[len(seen)-1] = s
	return seen
}

// sightings collects what lists and watches showed: the ends of each stream's lists, its position, and watch deltas from
// the beginning and the end of a few days. It excludes everything before the server's history was last rolled back.
func (f *etcdSurvey) sightings(ctx context.Context, streams []*Stream, gaps []Gap) (*watcher, error) {
	w := &watcher{seen: make(map[int32][]sighting), changed: make(map[int32]bool), against: make(map[[2]int32]bool), earlier: make(map[int32]uint64)}
	var since time.Time
	for i := range gaps {
		if gaps[i].Cause == delta.CauseHistoryReversed {
			since = times.Later(since, gaps[i].ToAt)
		}
	}
	listed := make(map[int32]string)
	for i := range gaps {
		if g := &gaps[i]; !g.ToAt.IsZero() && g.Outcome != delta.OutcomeResumed && !g.ToAt.Before(since) {
			w.list(g.Stream.ID, g.ToAt, g.ToRV)
			listed[g.Stream.ID] = g.ToRV
		}
	}
	for _, s := range streams {
		w.changed[s.ID] = s.LastSeq > 0 && s.LastRV != "" && listed[s.ID] != s.LastRV
	}
	days, err := f.view.daysFrom(ctx, 1, f.extent.LastSeq)
	if err != nil {
		return nil, err
	}
	for _, d := range sample(days) {
		if err := f.watched(ctx, &d, streams, since, w); err != nil {
			return nil, err
		}
	}
	for _, s := range streams {
		w.list(s.ID, f.extent.LastAt, s.LastRV)
	}
	return w, nil
}

// sample returns the first day and the last two.
func sample(days []Day) []Day {
	if len(days) <= 3 {
		return days
	}
	return []Day{days[0], days[len(days)-2], days[len(days)-1]}
}

// watchedRows is how many deltas of a day watched reads from its beginning, and from its end.
const watchedRows = 5000

func (f *etcdSurvey) watched(ctx context.Context, d *Day, streams []*Stream, since time.Time, w *watcher) error {
	ids := make([]int32, len(streams))
	for i, s := range streams {
		ids[i] = s.ID
	}
	// Recovered deltas prove nothing: each watch catches up on its own.
	rows, err := f.view.db.Query(ctx, `
		SELECT stream, observed_at, rv FROM kuberewind.record_deltas
		WHERE cluster = $1 AND observed_at BETWEEN $2 AND $3 AND (seq < $4 OR seq > $5) AND observed_at >= $6
			AND stream = ANY ($7::int[]) AND source = 1 AND occurred_at = observed_at
		ORDER BY seq`, f.view.cluster.Number, d.FirstAt, d.LastAt, d.FirstSeq+watchedRows, d.LastSeq-watchedRows, since, ids)
	if err != nil {
		return fmt.Errorf("read which resource versions were shown: %w", err)
	}
	var s sighting
	if _, err := pgx.ForEachRow(rows, []any{&s.stream, &s.at, &s.rv}, func() error {
		w.watch(s)
		return nil
	}); err != nil {
		return fmt.Errorf("read which resource versions were shown: %w", err)
	}
	return nil
}

// ties joins the streams that one etcd is known to number (a union-find).
type ties map[int32]int32

func newTies(streams []*Stream) ties {
	t := make(ties, len(streams))
	for _, s := range streams {
		t[s.ID] = s.ID
	}
	return t
}

func (t ties) find(id int32) int32 {
	for t[id] != id {
		id = t[id]
	}
	return id
}

func (t ties) join(a, b int32) { t[t.find(a)] = t.find(b) }
