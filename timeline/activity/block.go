package activity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// A Width is how long the stretches of time are that are counted.
type Width string

// The widths. Those of a resource are of all namespaces and managers together: they are a tenth as many counts, and few filters need more.
const (
	Minute           Width = "minute"
	Hour             Width = "hour"
	MinuteOfResource Width = "minute of resource"
	HourOfResource   Width = "hour of resource"
)

// Delta is the width of the row that holds each delta by itself.
const Delta Width = "delta"

// widths are how long they are. A block has a row for each, and one for its deltas.
var widths = []struct {
	width    Width
	long     time.Duration
	together bool // namespaces and managers
}{{Minute, time.Minute, false}, {Hour, time.Hour, false}, {MinuteOfResource, time.Minute, true}, {HourOfResource, time.Hour, true}}

// rowsOfBlock is how many rows a block has.
var rowsOfBlock = len(widths) + 1

// A stretch is of seqs of one day.
type stretch struct {
	day         time.Time
	first, last int64
}

// A key says what was counted.
type key struct {
	at int64 // begin of the minute or hour, in seconds since 1970
	kind
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.stream, other.stream), cmp.Compare(k.class, other.class), cmp.Compare(k.namespace, other.namespace),
		cmp.Compare(k.manager, other.manager), cmp.Compare(k.at, other.at))
}

// A tally is how many there were.
type tally struct {
	n           int32
	first, last int64 // seqs
}

func (t tally) plus(other tally) tally {
	if t.n == 0 {
		return other
	}
	return tally{t.n + other.n, min(t.first, other.first), max(t.last, other.last)}
}

// tallies are the counts of a stretch, by minute or by hour.
type tallies map[key]tally

// by gives the same counts in a greater width, and for all namespaces and managers together if that is asked for.
func (t tallies) by(long time.Duration, together bool) tallies {
	seconds := int64(long / time.Second)
	wide := tallies{}
	for k, n := range t {
		k.at -= ((k.at % seconds) + seconds) % seconds
		if together {
			k.namespace, k.manager = "", ""
		}
		wide[k] = wide[k].plus(n)
	}
	return wide
}

// columns are counts as the table holds them.
type columns struct {
	times               []time.Time
	streams             []int32
	namespaces          []string
	managers, classes   []string
	counts              []int32
	firstSeqs, lastSeqs []int64
	deltas              []byte // of a sequence
}

// newColumns are empty, and not NULL.
func newColumns() *columns {
	return &columns{times: []time.Time{}, counts: []int32{}, firstSeqs: []int64{}, lastSeqs: []int64{}, deltas: []byte{}}
}

// columns puts the counts in order. Neighbours resemble each other, so that they compress well.
func (t tallies) columns() *columns {
	keys := make([]key, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	c := newColumns()
	for _, k := range keys {
		n := t[k]
		c.times = append(c.times, time.Unix(k.at, 0).UTC())
		c.streams, c.namespaces = append(c.streams, k.stream), append(c.namespaces, k.namespace)
		c.managers, c.classes = append(c.managers, k.manager), append(c.classes, string(k.class))
		c.counts, c.firstSeqs, c.lastSeqs = append(c.counts, n.n), append(c.firstSeqs, n.first), append(c.lastSeqs, n.last)
	}
	return c
}

// tallies reads columns. It refuses columns of several lengths, and two counts of one thing.
func (c *columns) tallies() (tallies, error) {
	t := tallies{}
	n := len(c.times)
	for _, length := range []int{len(c.streams), len(c.namespaces), len(c.managers), len(c.classes), len(c.counts), len(c.firstSeqs), len(c.lastSeqs)} {
		if length != n {
			return nil, errLengths
		}
	}
	for i := range n {
		k := key{c.times[i].Unix(), kind{c.streams[i], c.namespaces[i], c.managers[i], class.Class(c.classes[i])}}
		if _, twice := t[k]; twice {
			return nil, fmt.Errorf("it counts one thing twice: %s", k.begin())
		}
		t[k] = tally{c.counts[i], c.firstSeqs[i], c.lastSeqs[i]}
	}
	return t, nil
}

func (k key) begin() string { return time.Unix(k.at, 0).UTC().Format(time.RFC3339) }

var errLengths = errors.New("its arrays have several lengths")

// errNewStream says that a delta is of a stream that began after the streams were read. Its class would be a guess.
var errNewStream = errors.New("a stream has just begun")

// errHoles says that deltas or lives are missing that are to be counted.
var errHoles = errors.New("the record is damaged")

const (
	// sliceDeltas are read at once: their patches are what takes memory, some KiB each, and no more than two objects of etcd.
	sliceDeltas = 2048
	// mostNamespaces bounds what is remembered of lives.
	mostNamespaces = 100_000
)

// A reckoner counts deltas, from the deltas themselves.
type reckoner struct {
	record     *history.Record
	reader     *marks.Reader
	namespaces map[int64]string // of lives
}

func newReckoner(record *history.Record) *reckoner {
	return &reckoner{record: record, reader: marks.NewReader(record), namespaces: map[int64]string{}}
}

// A reckoned is what was counted of a stretch.
type reckoned struct {
	minutes  tallies
	sequence sequence
}

// count counts a stretch. All its deltas have to be there. The error may be errNewStream or a *history.MissingDayError.
func (r *reckoner) count(ctx context.Context, s stretch) (*reckoned, error) {
	reading, err := r.reader.Begin(ctx, ask.Filter{Classes: class.All}, ask.Window{}, nil)
	if err != nil {
		return nil, err
	}
	minutes, each := tallies{}, sequencer{}
	for from := s.first; from <= s.last; from += sliceDeltas {
		to := min(from+sliceDeltas-1, s.last)
		found, err := reading.Read(ctx, from, to)
		if err != nil {
			return nil, err
		}
		if int64(len(found)) != to-from+1 {
			return nil, fmt.Errorf("%w: of the seqs %d to %d, %d are on record", errHoles, from, to, len(found))
		}
		if err := r.learn(ctx, found); err != nil {
			return nil, err
		}
		for i := range found {
			m := &found[i]
			if !reading.Knows(m.Stream) {
				return nil, errNewStream
			}
			k := key{m.OccurredAt.Truncate(time.Minute).Unix(), kind{m.Stream, r.namespaces[m.ObjectID], m.Manager, m.Class}}
			minutes[k] = minutes[k].plus(tally{1, m.Seq, m.Seq})
			each.add(k.kind, m.OccurredAt.UnixMilli())
		}
	}
	return &reckoned{minutes, each.sequence}, nil
}

// learn reads the namespaces of lives.
func (r *reckoner) learn(ctx context.Context, found []marks.Mark) error {
	if len(r.namespaces) > mostNamespaces {
		clear(r.namespaces)
	}
	var ids []int64
	for i := range found {
		if _, known := r.namespaces[found[i].ObjectID]; !known {
			ids = append(ids, found[i].ObjectID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	rows, err := r.record.Pool().Query(ctx, `SELECT object_id, namespace FROM kuberewind.record_lives WHERE cluster = $1 AND object_id = ANY ($2::bigint[])`,
		r.record.Cluster().Number, ids)
	if err != nil {
		return err
	}
	var id int64
	var namespace string
	if _, err := pgx.ForEachRow(rows, []any{&id, &namespace}, func() error {
		r.namespaces[id] = namespace
		return nil
	}); err != nil {
		return fmt.Errorf("read the namespaces of objects: %w", err)
	}
	for _, id := range ids {
		if _, known := r.namespaces[id]; !known {
			return fmt.Errorf("%w: the life %d is not on record", errHoles, id)
		}
	}
	return nil
}
