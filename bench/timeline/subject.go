package timeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A subject is what a record is asked about.
type subject struct {
	first, last time.Time
	seq         int64
	lives, live int64
	namespace   string // the one with most objects
	manager     string // the one that wrote most of what was recorded last
	name        string // of the Pod with most deltas of these, without its last part
	label       string // of that Pod, key=value
}

func (s *subject) String() string {
	return fmt.Sprintf("%s deltas in %s of %s objects, %s of them live", measure.Number(float64(s.seq)), s.last.Sub(s.first).Round(time.Minute), measure.Number(float64(s.lives)),
		measure.Number(float64(s.live)))
}

const extent = `
	SELECT h.seq, h.observed_at, (SELECT min(observed_at) FROM kuberewind.record_deltas),
		(SELECT count(*) FROM kuberewind.record_lives), (SELECT count(*) FROM kuberewind.record_living)
	FROM kuberewind.record_heads h`

const largestNamespace = `
	SELECT namespace FROM kuberewind.record_living a JOIN kuberewind.record_lives l USING (cluster, object_id)
	WHERE namespace <> '' GROUP BY namespace ORDER BY count(*) DESC, namespace LIMIT 1`

// newest are so many deltas from the end.
const newest = 20_000

const commonManager = `
	SELECT manager FROM kuberewind.deltas WHERE seq > $1 AND manager_evidence <> 'none' GROUP BY manager ORDER BY count(*) DESC, manager LIMIT 1`

const busyPod = `
	SELECT name, coalesce((SELECT key || '=' || value FROM jsonb_each_text(object_at(cluster, '', 'pods', namespace, name, 'seq:' || max(seq)) #> '{metadata,labels}')
		WHERE value ~ '^[A-Za-z0-9]+([-A-Za-z0-9_.]*[A-Za-z0-9])?$' ORDER BY key LIMIT 1), '')
	FROM kuberewind.deltas WHERE seq > $1 AND api_group = '' AND resource = 'pods' AND type <> 'Deleted'
	GROUP BY cluster, namespace, name ORDER BY count(*) DESC, namespace, name LIMIT 1`

// choose finds what to ask about. The record holds one cluster.
func choose(ctx context.Context, database string) (s *subject, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `SET search_path = kuberewind`); err != nil {
		return nil, err
	}
	s = new(subject)
	if err := conn.QueryRow(ctx, extent).Scan(&s.seq, &s.last, &s.first, &s.lives, &s.live); err != nil {
		return nil, fmt.Errorf("the size of the record: %w", err)
	}
	if err := conn.QueryRow(ctx, largestNamespace).Scan(&s.namespace); err != nil {
		return nil, fmt.Errorf("a namespace: %w", err)
	}
	if err := conn.QueryRow(ctx, commonManager, s.seq-newest).Scan(&s.manager); err != nil {
		return nil, fmt.Errorf("a field manager: %w", err)
	}
	if err := conn.QueryRow(ctx, busyPod, s.seq-newest).Scan(&s.name, &s.label); err != nil {
		return nil, fmt.Errorf("a Pod: %w", err)
	}
	if s.label == "" {
		return nil, fmt.Errorf("%w: the Pod %s has no label", errAnswer, s.name)
	}
	s.name = s.name[:max(len(s.name)*2/3, 1)]
	return s, nil
}

// widths are those of the windows that are asked for. Wider ones than the record are that of the record.
var widths = []time.Duration{time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 100 * 365 * 24 * time.Hour}

// A window is one of the record.
type window struct{ from, to time.Time }

// places is how many windows of each width a round asks for.
const places = 4

// windows gives some of each width, at places that the seed and the round decide, and the whole record. The first of each width ends with the record: that is
// what the page shows first.
func (s *subject) windows(seed uint64, round int) (all []window) {
	random := rand.New(rand.NewPCG(seed, uint64(round+1)))
	whole := s.last.Sub(s.first) + time.Millisecond
	for _, width := range widths {
		free := whole - width
		if free <= 0 {
			return append(all, window{s.first, s.first.Add(whole)})
		}
		for place := range places {
			from := s.first.Add(free)
			if place > 0 {
				from = s.first.Add(time.Duration(random.Int64N(int64(free))))
			}
			all = append(all, window{from, from.Add(width)})
		}
	}
	return all
}

// query is a window as a question.
func (w window) query(more ...string) url.Values {
	q := url.Values{"from": {strconv.FormatInt(w.from.UnixMilli(), 10)}, "to": {strconv.FormatInt(w.to.UnixMilli()+1, 10)}}
	for i := 0; i < len(more); i += 2 {
		q.Add(more[i], more[i+1])
	}
	return q
}

// A named is a filter with the name that tables show.
type named struct {
	name   string
	filter []string
}

// columns are the filters that a count may be kept for.
func (s *subject) columns() []named {
	return []named{
		{"no filter", nil}, {"by kind", []string{"resource", "pods"}}, {"by namespace", []string{"namespace", s.namespace}}, {"by manager", []string{"manager", s.manager}},
		{"by class", []string{"class", "change"}},
	}
}

// others are the filters for which every delta has to be looked at.
func (s *subject) others() []named {
	return []named{
		{"by path", []string{"path", "/spec"}}, {"by label", []string{"label", s.label}}, {"by name", []string{"name", s.name + "*"}}, {"by type", []string{"type", "Deleted"}},
	}
}
