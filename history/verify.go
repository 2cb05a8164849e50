package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// VerifyOptions of Verify.
type VerifyOptions struct {
	// Progress is called now and then.
	Progress func(Progress)
	// Counts is filled while Verify runs; nil means that nobody asks.
	Counts *VerifyCounts
}

// A Check is one of the checks of Verify.
type Check string

// The checks of Verify.
const (
	CheckSeq        Check = "seq"        // seq goes up from the first without holes, and observed_at does not go down
	CheckFold       Check = "fold"       // each version folds to its digest
	CheckOld        Check = "old"        // the old values in patches are those of the version before
	CheckKeyframe   Check = "keyframe"   // the first row of a life in a day is a keyframe, and keyframes agree with their patches
	CheckDays       Check = "days"       // the bounds of days are those of the rows
	CheckPartition  Check = "partition"  // partitions hold their day only, and none is missing
	CheckLives      Check = "lives"      // lives begin with their first delta, have the owners of its version, and end with their deletion. A recorder that starts finds the living ones
	CheckStreams    Check = "streams"    // positions are those of the last rows
	CheckCheckpoint Check = "checkpoint" // each checkpoint holds what the deltas fold to
)

// Checks are all of them, in the order in which they are explained.
var Checks = []Check{CheckSeq, CheckFold, CheckOld, CheckKeyframe, CheckDays, CheckPartition, CheckLives, CheckStreams, CheckCheckpoint}

// A Finding is something that does not hold.
type Finding struct {
	Check Check
	Seq   int64 // 0 if it is about no single delta
	Text  string
}

// VerifyCounts say what was looked at.
type VerifyCounts struct {
	Deltas, Lives, Live, Patches, Keyframes, Days, Streams, Checkpoints, CheckpointObjects, Findings int64
}

// Verify reads the whole record and gives each violation, and nothing if all holds. It keeps every living object, compressed,
// and a few thousand rows. It leaves out rows that are written while it runs. VerifyChain of sink/postgres checks the chain of
// batches and finds changes. Verify finds what was wrong from the start, or was changed outside the chain.
func (r *Record) Verify(ctx context.Context, o VerifyOptions) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		v := &verification{record: r, options: o, counts: o.Counts, objects: make(map[int64]*held), last: make(map[int32]*lastOfStream)}
		if v.counts == nil {
			v.counts = new(VerifyCounts)
		}
		v.report = func(f Finding) error {
			v.counts.Findings++
			if !yield(f, nil) {
				return errStopped
			}
			return nil
		}
		if err := v.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Finding{}, fmt.Errorf("verify the record: %w", err))
		}
	}
}

// errStopped says that the caller wants no more.
var errStopped = errors.New("stopped")

// A verification goes through all deltas once.
type verification struct {
	record  *Record
	options VerifyOptions
	counts  *VerifyCounts
	report  func(Finding) error

	extent      Extent
	streams     []*Stream
	checkpoints []CheckpointInfo // oldest first, those not reached yet
	prunes      []prunedDay
	objects     map[int64]*held
	last        map[int32]*lastOfStream
	generation  map[int32]time.Time // when the server's history of a stream last went backwards: the numbers before say nothing
	born, ended int64
	expected    int64 // next seq
	observed    time.Time
	packed      []byte
}

// A held is a living object as the deltas so far give it.
type held struct {
	seq    int64
	stream int32
	day    time.Time
	doc    []byte // s2; nil if it cannot be folded
	digest [16]byte
}

type lastOfStream struct {
	seq int64
	rv  string // of its watch
}

func (v *verification) found(check Check, seq int64, format string, args ...any) error {
	return v.report(Finding{Check: check, Seq: seq, Text: fmt.Sprintf(format, args...)})
}

func (v *verification) run(ctx context.Context) error {
	days, partitions, err := v.begin(ctx)
	if err != nil {
		return err
	}
	if err := v.dropped(); err != nil || len(days) == 0 {
		return err
	}
	v.expected = v.extent.FirstSeq
	for i := range days {
		if err := v.day(ctx, &days[i], partitions); err != nil {
			return err
		}
	}
	if v.expected != v.extent.LastSeq+1 {
		if err := v.found(CheckSeq, v.expected, "the head is at seq %d, and the last delta on record is seq %d", v.extent.LastSeq, v.expected-1); err != nil {
			return err
		}
	}
	if err := v.positions(); err != nil {
		return err
	}
	if err := v.lives(ctx); err != nil {
		return err
	}
	return v.living(ctx)
}

// begin reads, in one state, the end of the record and its description of itself.
func (v *verification) begin(ctx context.Context) (days []day, partitions map[time.Time]bool, err error) {
	r := v.record
	err = pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if v.extent, err = r.extent(ctx, tx); err != nil {
			return err
		}
		set, err := r.readStreams(ctx, tx)
		if err != nil {
			return err
		}
		v.streams = set.all
		gaps, err := r.gaps(ctx, tx, Scope{})
		if err != nil {
			return err
		}
		v.generation = make(map[int32]time.Time)
		for i := range gaps {
			if g := &gaps[i]; g.Cause == delta.CauseHistoryReversed && !g.ToAt.IsZero() {
				v.generation[g.Stream.ID] = g.ToAt
			}
		}
		if v.checkpoints, err = r.checkpoints(ctx, tx, v.extent.LastSeq, wholeSeq); err != nil {
			return err
		}
		slices.Reverse(v.checkpoints)
		if days, err = r.daysFrom(ctx, tx, 0, wholeSeq); err != nil {
			return err
		}
		if v.prunes, err = r.prunedDays(ctx, tx); err != nil {
			return err
		}
		partitions, err = v.partitions(ctx, tx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	v.counts.Streams = int64(len(v.streams))
	return days, partitions, v.unlisted(ctx, days, partitions)
}

// partitions lists the days that have a partition, and checks that each is bounded by its day.
func (v *verification) partitions(ctx context.Context, db querier) (map[time.Time]bool, error) {
	rows, err := db.Query(ctx, `
		SELECT c.relname, coalesce(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '')
		FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'kuberewind.deltas_data'::regclass ORDER BY c.relname`)
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	partitions := make(map[time.Time]bool)
	var wrong []Finding
	var name, bound string
	_, err = pgx.ForEachRow(rows, []any{&name, &bound}, func() error {
		at, err := time.Parse("deltas_p20060102", name)
		// The session's time zone is UTC.
		want := fmt.Sprintf("FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", at.Format(time.DateOnly), at.AddDate(0, 0, 1).Format(time.DateOnly))
		if err != nil || bound != want {
			wrong = append(wrong, Finding{Check: CheckPartition, Text: fmt.Sprintf("partition %s holds other times than its day: %s", name, bound)})
			return nil //nolint:nilerr // a name that is none of ours is the finding
		}
		partitions[at] = true
		return nil
	})
	for _, f := range wrong {
		if err := v.report(f); err != nil {
			return nil, err
		}
	}
	return partitions, err
}

// unlisted looks for rows in partitions that the table of days says nothing about.
func (v *verification) unlisted(ctx context.Context, days []day, partitions map[time.Time]bool) error {
	for at := range partitions {
		if slices.ContainsFunc(days, func(d day) bool { return d.day.Equal(at) }) {
			continue
		}
		var seq *int64
		err := v.record.pool.QueryRow(ctx, `
			SELECT min(seq) FROM kuberewind.record_deltas WHERE cluster = $1 AND observed_at >= $2 AND observed_at < $3 AND seq <= $4`,
			v.record.cluster.Number, at, at.AddDate(0, 0, 1), v.extent.LastSeq).Scan(&seq)
		if err != nil {
			return err
		}
		if seq != nil {
			if err := v.found(CheckDays, *seq, "the partition of %s holds deltas from seq %d on, and days says nothing of that day", at.Format(time.DateOnly), *seq); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verification) day(ctx context.Context, d *day, partitions map[time.Time]bool) error {
	v.counts.Days++
	if !partitions[d.day] {
		if err := v.found(CheckPartition, d.firstSeq, "the partition of %s is missing, with seq %d to %d", d.day.Format(time.DateOnly), d.firstSeq, d.lastSeq); err != nil {
			return err
		}
		v.expected = d.lastSeq + 1
		v.forget()
		return nil
	}
	// Everything of the UTC day, whatever days says of its bounds.
	whole := day{day: d.day, firstSeq: 0, lastSeq: v.extent.LastSeq, firstAt: d.day, lastAt: d.day.AddDate(0, 0, 1).Add(-time.Microsecond)}
	g := &deltaReader{record: v.record, q: Query{ToSeq: v.extent.LastSeq}, limit: firstBatch}
	var err error
	var first, last *row
	g.day(ctx, &whole, func(batch []row, readErr error) bool {
		if readErr != nil {
			if !isMissingDay(readErr) {
				err = readErr
			}
			return false
		}
		if first == nil {
			first = &batch[0]
		}
		last = &batch[len(batch)-1]
		err = v.batch(ctx, batch)
		return err == nil
	})
	if err != nil {
		return err
	}
	return v.bounds(d, first, last)
}

func (v *verification) bounds(d *day, first, last *row) error {
	name := d.day.Format(time.DateOnly)
	switch {
	case first == nil:
		return v.found(CheckDays, d.firstSeq, "days says that %s holds seq %d to %d, and its partition holds none of this cluster", name, d.firstSeq, d.lastSeq)
	case first.seq != d.firstSeq || !first.observed.Equal(d.firstAt):
		return v.found(CheckDays, first.seq, "days says that %s begins with seq %d at %s, and it begins with seq %d at %s", name, d.firstSeq, exactly(d.firstAt), first.seq, exactly(first.observed))
	case last.seq != d.lastSeq && d.lastSeq <= v.extent.LastSeq, d.lastSeq == last.seq && !last.observed.Equal(d.lastAt):
		return v.found(CheckDays, last.seq, "days says that %s ends with seq %d at %s, and it ends with seq %d at %s", name, d.lastSeq, exactly(d.lastAt), last.seq, exactly(last.observed))
	}
	return nil
}

// forget drops what was folded: versions are missing.
func (v *verification) forget() {
	for _, o := range v.objects {
		o.doc = nil
	}
}

func (v *verification) batch(ctx context.Context, batch []row) error {
	lives, err := v.livesOf(ctx, batch)
	if err != nil {
		return err
	}
	for i := range batch {
		w := &batch[i]
		for len(v.checkpoints) > 0 && v.checkpoints[0].Seq < w.seq {
			if err := v.checkpoint(ctx); err != nil {
				return err
			}
		}
		if err := v.order(w); err != nil {
			return err
		}
		if err := v.row(w); err != nil {
			return err
		}
		if err := v.life(w, lives); err != nil {
			return err
		}
		v.counts.Deltas++
		if w.seq == v.extent.LastSeq && len(v.checkpoints) > 0 {
			if err := v.checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	v.counts.Live = int64(len(v.objects))
	if v.options.Progress != nil {
		v.options.Progress(Progress{Stage: "deltas", Done: batch[len(batch)-1].seq - v.extent.FirstSeq + 1, Total: v.extent.LastSeq - v.extent.FirstSeq + 1})
	}
	return nil
}

// order checks what goes up with every row.
func (v *verification) order(w *row) error {
	if w.seq != v.expected {
		text := fmt.Sprintf("seq %d to %d are not on record", v.expected, w.seq-1)
		if w.seq < v.expected {
			text = fmt.Sprintf("seq %d is on record twice", w.seq)
		}
		if err := v.report(Finding{Check: CheckSeq, Seq: w.seq, Text: text}); err != nil {
			return err
		}
	}
	v.expected = w.seq + 1
	if w.observed.Before(v.observed) {
		if err := v.found(CheckSeq, w.seq, "it was observed at %s, before the delta before it", exactly(w.observed)); err != nil {
			return err
		}
	}
	v.observed = w.observed
	if s := v.last[w.stream]; s == nil {
		v.last[w.stream] = &lastOfStream{seq: w.seq}
	} else {
		s.seq = w.seq
	}
	if s := v.last[w.stream]; w.source == delta.NumberWatch && !w.observed.Before(v.generation[w.stream]) {
		s.rv = w.rv
	}
	return nil
}

// row folds a row and checks it in every way.
func (v *verification) row(w *row) error {
	at := w.observed.UTC().Truncate(24 * time.Hour)
	o, before, err := v.before(w)
	if err != nil {
		return err
	}
	if w.whole() {
		v.counts.Keyframes++
	} else if !o.day.Equal(at) && (w.kind != delta.NumberDeleted || w.patch != nil) {
		if err := v.found(CheckKeyframe, w.seq, "it is the first of its object on %s, and no keyframe", at.Format(time.DateOnly)); err != nil {
			return err
		}
	}
	o.seq, o.day, o.stream = w.seq, at, w.stream
	if w.patch != nil {
		v.counts.Patches++
		if err := v.patched(w, before); err != nil {
			return err
		}
	}
	doc, foldErr := Step(before, w.rv, w.patch, w.object, w.exact, w.digest)
	unknown := errors.Is(foldErr, ErrNoKeyframe) && w.seq != w.objectID // told where it began
	if foldErr != nil {
		o.doc = nil
		if unknown {
			return nil
		}
		return v.found(CheckFold, w.seq, "%s does not fold: %v", v.name(w), foldErr)
	}
	v.packed = s2.Encode(v.packed[:cap(v.packed)], doc)
	o.doc = append(o.doc[:0], v.packed...)
	copy(o.digest[:], w.digest)
	return nil
}

func (v *verification) name(w *row) string {
	name := w.name
	if w.namespace != "" {
		name = w.namespace + "/" + name
	}
	for _, s := range v.streams {
		if s.ID == w.stream {
			return s.GroupResource().String() + " " + name
		}
	}
	return name
}

// before gives what is held of the row's object.
func (v *verification) before(w *row) (*held, patch.Doc, error) {
	o := v.objects[w.objectID]
	if o == nil {
		o = new(held)
		v.objects[w.objectID] = o
		switch {
		case w.seq == w.objectID:
			v.born++
		case w.objectID >= v.extent.FirstSeq:
			if err := v.found(CheckLives, w.seq, "it belongs to object %d, which has ended, or has no first delta", w.objectID); err != nil {
				return nil, nil, err
			}
		}
		return o, nil, nil
	}
	if w.seq == w.objectID {
		if err := v.found(CheckLives, w.seq, "it begins an object that is there already"); err != nil {
			return nil, nil, err
		}
	}
	if o.doc == nil {
		return o, nil, nil
	}
	doc, err := s2.Decode(nil, o.doc)
	return o, doc, err
}

// patched checks a patch against the version before it.
func (v *verification) patched(w *row, before patch.Doc) error {
	if before == nil || w.exact != nil {
		return nil
	}
	base := Rebased(before, w.rv)
	if _, changed := patch.SafeForSQL(base); changed {
		return nil // the patch says in part what SQL can hold, for readers; the keyframe beside it counts
	}
	tested, err := withTests(w.patch)
	if err != nil {
		return v.found(CheckOld, w.seq, "%s: its patch: %v", v.name(w), err)
	}
	doc, err := patch.Apply(base, tested)
	if err != nil {
		if _, plainErr := patch.Apply(base, w.patch); plainErr == nil {
			return v.found(CheckOld, w.seq, "%s: what its patch calls old is not what was there: %v", v.name(w), err)
		}
		return v.found(CheckFold, w.seq, "%s: its patch does not apply: %v", v.name(w), err)
	}
	if w.whole() {
		whole, err := w.keyframe()
		if err == nil && string(whole) != string(doc) {
			return v.found(CheckKeyframe, w.seq, "%s: its patch gives another object than the keyframe beside it", v.name(w))
		}
	}
	return nil
}

// checkpoint compares the next checkpoint with what the deltas up to it fold to.
func (v *verification) checkpoint(ctx context.Context) error {
	info := v.checkpoints[0]
	v.checkpoints = v.checkpoints[1:]
	if info.Seq < v.expected-1 || info.Seq >= v.expected {
		return v.found(CheckCheckpoint, info.Seq, "checkpoint %d is of a seq that is not on record", info.Seq)
	}
	v.counts.Checkpoints++
	wrong := func(text string) error {
		if there, err := v.record.hasCheckpoint(ctx, v.record.pool, info.Seq); err != nil || !there {
			return err // it was thinned out meanwhile
		}
		return v.found(CheckCheckpoint, info.Seq, "checkpoint %d: %s", info.Seq, text)
	}
	found, err := v.record.usable(ctx, v.record.pool, info, Scope{})
	if errors.Is(err, errUnusable) {
		return wrong(err.Error())
	}
	if err != nil {
		return err
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	objects := int64(0)
	for _, number := range found.blocks {
		data, err := v.record.block(ctx, v.record.pool, info.Seq, number)
		if err == nil {
			var records []checkpoint.Record
			records, err = decoder.Block(data)
			for i := range records {
				objects++
				v.counts.CheckpointObjects++
				if text := v.differs(&records[i]); text != "" {
					if err := wrong(text); err != nil {
						return err
					}
				}
			}
		}
		if errors.Is(err, errUnusable) || errors.Is(err, checkpoint.ErrBlock) {
			return wrong(fmt.Sprintf("block %d: %v", number, err))
		}
		if err != nil {
			return err
		}
	}
	if objects != int64(len(v.objects)) {
		return wrong(fmt.Sprintf("it holds %d objects, and %d were alive", objects, len(v.objects)))
	}
	return nil
}

func (v *verification) differs(r *checkpoint.Record) string {
	o := v.objects[r.ObjectID]
	switch {
	case o == nil:
		return fmt.Sprintf("it holds object %d (%s/%s), which was not alive", r.ObjectID, r.Namespace, r.Name)
	case len(r.Doc) == 0 || o.doc == nil:
		return "" // damaged, which was reported
	case r.Seq != o.seq || r.Digest != o.digest || r.Stream != o.stream:
		return fmt.Sprintf("of object %d (%s/%s) it holds another version than seq %d", r.ObjectID, r.Namespace, r.Name, o.seq)
	case patch.Digest(r.Doc) != r.Digest:
		return fmt.Sprintf("object %d (%s/%s) has another digest", r.ObjectID, r.Namespace, r.Name)
	}
	return ""
}

// positions compares the streams with their last rows.
func (v *verification) positions() error {
	for _, s := range v.streams {
		last := v.last[s.ID]
		if last == nil {
			last = new(lastOfStream)
		}
		if last.seq != s.LastSeq && (last.seq != 0 || s.LastSeq >= v.extent.FirstSeq) {
			if err := v.found(CheckStreams, s.LastSeq, "the last delta of %s is seq %d, and the stream says seq %d", s, last.seq, s.LastSeq); err != nil {
				return err
			}
		}
		if last.rv != "" && delta.Precedes(s.LastRV, last.rv) {
			if err := v.found(CheckStreams, last.seq, "%s is recorded up to resource version %s, and the stream says %q", s, last.rv, s.LastRV); err != nil {
				return err
			}
		}
		delete(v.last, s.ID)
	}
	for id, last := range v.last {
		if err := v.found(CheckStreams, last.seq, "there are deltas of stream %d, and no such stream", id); err != nil {
			return err
		}
	}
	return nil
}
