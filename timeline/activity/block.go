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

// A Width is the length of the time buckets of a row of counts.
type Width string

// These are the widths. A row of a resource adds up all namespaces and managers. It has a tenth as many counts, and few
// filters need more.
const (
	Minute           Width = "minute"
	Hour             Width = "hour"
	MinuteOfResource Width = "minute of resource"
	HourOfResource   Width = "hour of resource"
)

// Delta is the width of the row that holds each delta separately.
const Delta Width = "delta"

// widths lists the rows of a block, except the row of its deltas.
var widths = []struct {
	width    Width
	long     time.Duration
	together bool // adds up namespaces and managers
}{{Minute, time.Minute, false}, {Hour, time.Hour, false}, {MinuteOfResource, time.Minute, true}, {HourOfResource, time.Hour, true}}

// rowsOfBlock is the number of rows in a block.
var rowsOfBlock = len(widths) + 1

// A span is a range of seqs of one day.
type span struct {
	day         time.Time
	first, last int64
}

// A key identifies one count.
type key struct {
	at int64 // beginning of the minute or hour, in seconds since 1970
	kind
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.stream, other.stream), cmp.Compare(k.class, other.class), cmp.Compare(k.namespace, other.namespace),
		cmp.Compare(k.manager, other.manager), cmp.Compare(k.at, other.at))
}

// A tally is one count, with the seqs that it covers.
type tally struct {
	n           int32
	first, last int64 // lowest and highest seq
}

func (t tally) plus(other tally) tally {
	if t.n == 0 {
		return other
	}
	return tally{t.n + other.n, min(t.first, other.first), max(t.last, other.last)}
}

// tallies are the counts of a span, by minute or by hour.
type tallies map[key]tally

// by returns the same counts in a larger width. If together is set, it adds up all namespaces and managers.
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

// columns hold counts in the form of the table.
type columns struct {
	times               []time.Time
	streams             []int32
	namespaces          []string
	managers, classes   []string
	counts              []int32
	firstSeqs, lastSeqs []int64
	deltas              []byte // of a sequence
}

// newColumns returns empty columns that are not NULL.
func newColumns() *columns {
	return &columns{times: []time.Time{}, counts: []int32{}, firstSeqs: []int64{}, lastSeqs: []int64{}, deltas: []byte{}}
}

// columns sorts the counts. Adjacent counts then resemble each other, so they compress well.
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

// tallies reads columns. It refuses columns of different lengths, and two counts with the same key.
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

// errNewStream says that a delta belongs to a stream that began after the reader read the streams. Its class would be a
// guess.
var errNewStream = errors.New("a stream has just begun")

// errHoles says that deltas or lives that must be counted are missing.
var errHoles = errors.New("the record is damaged")

const (
	// The counter reads sliceDeltas at once. Their patches dominate its memory: some KiB each, and at most twice the size
	// of an object in etcd.
	sliceDeltas = 2048
	// mostNamespaces bounds how many namespaces of lives the counter remembers.
	mostNamespaces = 100_000
)

// A blockCounter counts deltas by reading them.
type blockCounter struct {
	record     *history.Record
	reader     *marks.Reader
	namespaces map[int64]string // by ObjectID
}

func newBlockCounter(record *history.Record) *blockCounter {
	return &blockCounter{record: record, reader: marks.NewReader(record), namespaces: map[int64]string{}}
}

// blockCounts holds the counts of a span.
type blockCounts struct {
	minutes  tallies
	sequence sequence
}

// count counts a span. All its deltas must be on record. The error may be errNewStream or a *history.MissingDayError.
func (r *blockCounter) count(ctx context.Context, s span) (*blockCounts, error) {
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
		if err := r.loadNamespaces(ctx, found); err != nil {
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
	return &blockCounts{minutes, each.sequence}, nil
}

// loadNamespaces reads the namespaces of lives that are not in memory.
func (r *blockCounter) loadNamespaces(ctx context.Context, found []marks.Mark) error {
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
