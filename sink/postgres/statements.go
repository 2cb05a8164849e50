package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// statements is the rest of the transaction, sent at once. If one statement fails, the server skips the later ones,
// including COMMIT.
type statements struct {
	queue   *pgx.Batch
	cluster int32
}

// statementsOf returns the statements of a batch that is committed at a time.
func statementsOf(cluster int32, at time.Time, b *Batch) *pgx.Batch {
	s := statements{queue: new(pgx.Batch), cluster: cluster}
	s.batchRow(b, at)
	s.ended(b)
	s.streams(b)
	for i := range b.gaps {
		s.gap(&b.gaps[i])
	}
	for i := range b.days {
		s.day(&b.days[i])
	}
	s.excluded(b)
	s.sweep(b)
	s.queue.Queue("COMMIT")
	return s.queue
}

func (s *statements) batchRow(b *Batch, at time.Time) {
	s.queue.Queue(`
		INSERT INTO kuberewind.batches (cluster, batch, epoch, first_seq, last_seq, observed_at, committed_at, digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		s.cluster, b.after.batch, b.after.epoch, b.firstSeq(), b.after.seq, micros(b.after.observed), at, b.after.digest[:])
}

// ended removes the lives that ended from living.
func (s *statements) ended(b *Batch) {
	n := len(b.endings)
	if n == 0 {
		return
	}
	streams, ids := make([]int32, n), make([]int64, n)
	for i := range b.endings {
		streams[i], ids[i] = b.endings[i].stream, b.endings[i].ObjectID
	}
	s.queue.Queue(`SELECT kuberewind.end_living($1, $2, $3)`, s.cluster, streams, ids)
}

func (s *statements) streams(b *Batch) {
	n := len(b.streams)
	if n == 0 {
		return
	}
	ids, lastSeqs := make([]int32, n), make([]int64, n)
	positions, lastRVs := make([]*string, n), make([]*string, n)
	synced, bookmarks := make([]bool, n), make([]bool, n)
	states, details, filters, schemas := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	since, positioned := make([]time.Time, n), make([]time.Time, n)
	for i := range b.streams {
		w := &b.streams[i].state
		ids[i], lastSeqs[i] = b.streams[i].id, w.lastSeq
		positions[i], lastRVs[i] = nullable(clean(w.at.Complete)), nullable(clean(w.at.Newest))
		synced[i], bookmarks[i] = w.synced, w.bookmarks
		states[i], details[i], filters[i], schemas[i] = string(w.state), w.detail, w.filter, w.schema
		since[i], positioned[i] = micros(w.stateSince), micros(w.positionedAt)
	}
	s.queue.Queue(`
		UPDATE kuberewind.streams s
		SET position = n.position, last_rv = n.last_rv, last_seq = n.last_seq, synced = n.synced, bookmarks = n.bookmarks,
			state = n.state, detail = n.detail, filter = n.filter, schema = n.schema, state_since = n.state_since, positioned_at = n.positioned_at
		FROM unnest($2::int[], $3::text[], $4::text[], $5::bigint[], $6::bool[], $7::bool[], $8::text[], $9::text[], $10::text[], $11::timestamptz[], $12::timestamptz[], $13::text[])
			AS n (stream, position, last_rv, last_seq, synced, bookmarks, state, detail, filter, state_since, positioned_at, schema)
		WHERE s.cluster = $1 AND s.stream = n.stream`,
		s.cluster, ids, positions, lastRVs, lastSeqs, synced, bookmarks, states, details, filters, since, positioned, schemas)
}

func (s *statements) gap(g *gapChange) {
	if g.created {
		s.queue.Queue(`
			INSERT INTO kuberewind.gaps_data (cluster, gap, stream, cause, detail, from_rv, from_at, opened_batch)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			s.cluster, g.Number, g.Stream, g.Cause, g.Detail, g.FromRV, timeOrNull(g.FromAt), g.opened)
	}
	if g.closed == 0 {
		return
	}
	var counts [4]*int64
	for i := range counts {
		if g.Counts != nil {
			counts[i] = &g.Counts[i]
		}
	}
	s.queue.Queue(`
		UPDATE kuberewind.gaps_data
		SET to_rv = $3, to_at = $4, closed_batch = $5, outcome = $6, appeared = $7, changed = $8, vanished = $9, unchanged = $10, detail = $11
		WHERE cluster = $1 AND gap = $2`,
		s.cluster, g.Number, g.ToRV, timeOrNull(g.ToAt), g.closed, g.Outcome, counts[0], counts[1], counts[2], counts[3], g.Detail)
}

func (s *statements) day(d *dayRow) {
	if d.created {
		s.queue.Queue(`
			INSERT INTO kuberewind.days (cluster, day, first_seq, last_seq, first_at, last_at) VALUES ($1, $2::date, $3, $4, $5, $6)`,
			s.cluster, dayText(d.day), d.firstSeq, d.lastSeq, micros(d.firstAt), micros(d.lastAt))
		return
	}
	s.queue.Queue(`UPDATE kuberewind.days SET last_seq = $3, last_at = $4 WHERE cluster = $1 AND day = $2::date`,
		s.cluster, dayText(d.day), d.lastSeq, micros(d.lastAt))
}

func (s *statements) excluded(b *Batch) {
	if len(b.excluded) == 0 {
		return
	}
	var touched, present excludedColumns
	for key, r := range b.excluded {
		touched.add(key, r)
		if r.present {
			present.add(key, r)
		}
	}
	s.queue.Queue(`
		DELETE FROM kuberewind.exclusions x USING unnest($2::int[], $3::text[]) AS n (stream, uid)
		WHERE x.cluster = $1 AND x.stream = n.stream AND x.uid = n.uid`,
		s.cluster, touched.streams, touched.uids)
	s.queue.Queue(`
		INSERT INTO kuberewind.exclusions (cluster, stream, uid, namespace, name, excluded_at)
		SELECT $1, * FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])`,
		s.cluster, present.streams, present.uids, present.namespaces, present.names, present.times)
}

func (s *statements) sweep(b *Batch) {
	if b.sweep == nil {
		return
	}
	s.queue.Queue(`
		INSERT INTO kuberewind.sweeps (cluster, day, epoch, batch, seq, observed_at, objects) VALUES ($1, $2::date, $3, $4, $5, $6, $7)`,
		s.cluster, dayText(b.sweep.day), b.after.epoch, b.after.batch, b.after.seq, micros(b.after.observed), b.sweep.objects)
}

type excludedColumns struct {
	streams                 []int32
	uids, namespaces, names []string
	times                   []time.Time
}

func (c *excludedColumns) add(key excludedKey, r excludedRow) {
	c.streams = append(c.streams, key.stream)
	c.uids = append(c.uids, clean(string(key.uid)))
	c.namespaces = append(c.namespaces, r.namespace)
	c.names = append(c.names, r.name)
	c.times = append(c.times, micros(r.at))
}

func timeOrNull(n *int64) *time.Time {
	if n == nil {
		return nil
	}
	t := micros(*n)
	return &t
}
