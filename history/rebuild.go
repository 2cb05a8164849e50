package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// A rebuilding is a Rebuild on its way.
type rebuilding struct {
	record  *Record
	point   Point
	scope   Scope
	options RebuildOptions
	emit    func(Object) error
	streams streamSet
	workers int
	heirs   map[checkpoint.Key]int64 // of names, the last life of those that were caught up on and began by the point

	objects, damaged atomic.Int64
	progress         sync.Mutex // held while Progress is called
	stats            RebuildStats

	mu    sync.Mutex // protects doubt
	doubt []target   // objects that the checkpoint and the tail do not give: they are folded from the deltas alone
}

// Rebuild gives every object of a scope that was live at the point, in no order. emit is called from several goroutines at once.
//
// It starts from the newest checkpoint at or before the point, and folds the deltas after it. For single objects, and if there
// is no checkpoint, it folds each object from its deltas; the result is the same. RebuildOptions.Damaged receives an object
// that does not fold to its digest; without it, a *DamagedError ends the rebuild. A *MissingDayError says that a needed day's
// partition is gone.
func (r *Record) Rebuild(ctx context.Context, p Point, scope Scope, o RebuildOptions, emit func(Object) error) (RebuildStats, error) {
	if p.RV != "" && p.streams == nil {
		return RebuildStats{}, errors.New("rebuild: a point by resource version has to come from Resolve")
	}
	b := &rebuilding{record: r, point: p, scope: scope, options: o, emit: emit, workers: runtime.GOMAXPROCS(0)}
	var later *search
	// One state of the record: a checkpoint may be dropped while it is read.
	err := pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		later, err = b.run(ctx, tx)
		return err
	})
	if err == nil && later != nil {
		// Rows up to a seq do not change, so several connections see one state too. None is held meanwhile: rebuilds side by side would wait
		// for each other's.
		err = b.findAll(ctx, r.pool, b.workers, later)
	}
	b.stats.Objects, b.stats.Damaged = b.objects.Load(), b.damaged.Load()
	if err != nil {
		return b.stats, fmt.Errorf("rebuild %s: %w", p.Instant, err)
	}
	return b.stats, nil
}

// A search is for objects that are folded from their deltas alone.
type search struct {
	lives   map[int64]*Life
	targets []target
}

// run gives what it can within the transaction, and returns what is better found by several connections.
func (b *rebuilding) run(ctx context.Context, tx pgx.Tx) (later *search, err error) {
	if b.streams, err = b.record.readStreams(ctx, tx); err != nil {
		return nil, err
	}
	var from *saved
	if !b.options.NoCheckpoint && b.scope.Name == "" {
		if from, err = b.newest(ctx, tx); err != nil {
			return nil, err
		}
	}
	if from != nil {
		return nil, b.fromCheckpoint(ctx, tx, from)
	}
	found, err := b.fromDeltas(ctx, tx)
	if err != nil || len(found.targets) > lastChunk {
		return found, err
	}
	return nil, b.findAll(ctx, tx, 1, found)
}

// tailPerObject, beside leastDeltas, bounds the tail that is read to use a checkpoint. Folding an object from its deltas alone
// costs as much as reading five to nine rows of a tail. (See go test ./history -run '^$' -bench Rebuild; the records of ./bench
// are at five.)
const tailPerObject = 5

// newest finds the checkpoint to start from, or nil.
func (b *rebuilding) newest(ctx context.Context, tx pgx.Tx) (*saved, error) {
	upTo := b.point.sure(b.scope)
	extent, err := b.record.extent(ctx, tx)
	if err != nil {
		return nil, err
	}
	for {
		infos, err := b.record.checkpoints(ctx, tx, upTo, 1)
		if err != nil {
			return nil, err
		}
		if len(infos) == 0 {
			return nil, nil
		}
		info := infos[0]
		if info.Seq < extent.FirstSeq-1 {
			return nil, nil // The deltas after it were dropped in part, and an older one is no better.
		}
		if max(b.point.Seq, b.point.Until)-info.Seq > tailPerObject*info.Objects+leastDeltas {
			return nil, nil
		}
		upTo = info.Seq - 1
		found, err := b.record.usable(ctx, tx, info, b.scope)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, errUnusable) {
			return nil, err
		}
		text := fmt.Sprintf("checkpoint %d cannot be used: %v; the answer is the same without it", info.Seq, err)
		b.record.log.WarnContext(ctx, "a checkpoint cannot be used; an older one or none is", "cluster", b.record.cluster.Name, "checkpoint", info.Seq, "error", err)
		b.stats.Notes = append(b.stats.Notes, Note{Kind: NoteCheckpoint, Text: text})
	}
}

func (b *rebuilding) tell(stage string, done, total int64) {
	if b.options.Progress == nil {
		return
	}
	b.progress.Lock()
	defer b.progress.Unlock()
	b.options.Progress(Progress{Stage: stage, Done: done, Total: total})
}

func (b *rebuilding) give(o *Object) error {
	b.objects.Add(1)
	return b.emit(*o)
}

func (b *rebuilding) hurt(d *DamagedError) error {
	b.damaged.Add(1)
	if b.options.Damaged == nil {
		return d
	}
	b.options.Damaged(d)
	return nil
}

// doubted puts an object aside.
func (b *rebuilding) doubted(id, bound int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubt = append(b.doubt, target{id: id, bound: bound})
}

func (b *rebuilding) fromCheckpoint(ctx context.Context, tx pgx.Tx, from *saved) error {
	b.stats.Checkpoint = from.info.Seq
	t, err := b.record.readTail(ctx, tx, &b.point, b.scope, from.info.Seq, func(n int64) { b.tell("deltas", n, 0) })
	if err != nil {
		return err
	}
	b.stats.Tail = t.rows
	if err := b.inherit(ctx, tx, t); err != nil {
		return err
	}
	if err := b.decode(ctx, tx, from, t); err != nil {
		return err
	}
	if err := b.foldNew(ctx, tx, t); err != nil {
		return err
	}
	if len(b.doubt) == 0 {
		return nil
	}
	ids := make([]int64, len(b.doubt))
	for i, d := range b.doubt {
		ids[i] = d.id
	}
	lives, err := b.identities(ctx, tx, ids)
	if err != nil {
		return err
	}
	return b.findAll(ctx, tx, 1, &search{lives: lives, targets: b.doubt})
}

// decode gives the objects of the checkpoint that the tail leaves alone, and folds the others. One goroutine reads blocks, others decode them; no
// more wait than there are decoders.
func (b *rebuilding) decode(ctx context.Context, tx pgx.Tx, from *saved, t *tail) error {
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	work, workCtx := errgroup.WithContext(ctx)
	blocks := make(chan []byte)
	work.Go(func() error {
		defer close(blocks)
		return b.record.eachBlock(workCtx, tx, from, func(data []byte) error {
			select {
			case blocks <- data:
				return nil
			case <-workCtx.Done():
				return workCtx.Err()
			}
		})
	})
	for range b.workers {
		work.Go(func() error {
			for data := range blocks {
				records, err := decoder.Block(data)
				if err != nil {
					return fmt.Errorf("checkpoint %d: %w", from.info.Seq, err)
				}
				for i := range records {
					if err := b.saved(&records[i], t, from.info.Seq); err != nil {
						return err
					}
				}
				b.tell("objects", b.objects.Load(), from.info.Objects)
			}
			return nil
		})
	}
	return work.Wait()
}

func (b *rebuilding) inScope(stream int32, namespace, name string) bool {
	return (b.scope.Streams == nil || slices.Contains(b.scope.Streams, stream)) &&
		(b.scope.Namespace == "" || b.scope.Namespace == namespace) && (b.scope.Name == "" || b.scope.Name == name)
}

// saved gives one object of a checkpoint without comparing it once more. Its text was compared with the digest of its last row
// when the checkpoint was made. Its block was compared with the block's digest before use. An object that was damaged when the
// checkpoint was made has no text in it, and its last row is not known.
func (b *rebuilding) saved(s *checkpoint.Record, t *tail, made int64) error {
	if !b.inScope(s.Stream, s.Namespace, s.Name) {
		return nil
	}
	if at, ok := b.point.streams[s.Stream]; b.point.RV != "" && (!ok || at.seq == 0) {
		return nil
	}
	changed := t.objects[s.ObjectID]
	object := Object{
		ObjectID: s.ObjectID, Seq: s.Seq, Stream: b.streams.byID[s.Stream], Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		RV: s.RV, Version: s.Version, Doc: s.Doc,
	}
	switch {
	case b.heirs[s.Key()] > s.ObjectID:
		if changed != nil {
			changed.seen = true
		}
		return nil
	case changed == nil || !changed.touched():
		if len(s.Doc) == 0 {
			b.doubted(s.ObjectID, made)
			return nil
		}
		return b.give(&object)
	case changed.dead:
		changed.seen = true
		return nil
	}
	changed.seen = true
	return b.folded(&object, changed, s.Doc)
}

// folded gives an object that the tail changed.
func (b *rebuilding) folded(object *Object, changed *tailObject, before patch.Doc) error {
	last := changed.last()
	doc, err := changed.fold(before)
	if err != nil {
		b.doubted(object.ObjectID, last.seq)
		return nil //nolint:nilerr // it is folded again, step by step, and told then
	}
	object.Doc, object.Seq, object.ObservedAt, object.OccurredAt = doc, last.seq, last.observed.UTC(), last.occurred.UTC()
	object.RV, object.Version = last.rv, last.version
	return b.give(object)
}

// foldNew gives the objects that began in the tail.
func (b *rebuilding) foldNew(ctx context.Context, tx pgx.Tx, t *tail) error {
	var ids []int64
	for id, o := range t.objects {
		if o.touched() && !o.dead && !o.seen {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	lives, err := b.identities(ctx, tx, ids)
	if err != nil {
		return err
	}
	work, _ := errgroup.WithContext(ctx)
	work.SetLimit(b.workers)
	for chunk := range slices.Chunk(ids, lastChunk) {
		work.Go(func() error {
			for _, id := range chunk {
				changed := t.objects[id]
				life := lives[id]
				if b.outlived(life) {
					continue
				}
				if life == nil {
					life = &Life{ObjectID: id, Stream: b.streams.byID[changed.last().stream]}
				}
				object := life.object()
				if err := b.folded(&object, changed, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}

func (l *Life) object() Object {
	return Object{ObjectID: l.ObjectID, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, UID: l.UID}
}

// identities finds lives by their numbers, without their ends.
func (b *rebuilding) identities(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]*Life, error) {
	lives := make(map[int64]*Life, len(ids))
	if len(ids) == 0 {
		return lives, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT object_id, stream, namespace, name, uid, 0
		FROM kuberewind.record_lives WHERE cluster = $1 AND object_id = ANY ($2::bigint[])`, b.record.cluster.Number, ids)
	if err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		l := new(Life)
		var stream int32
		if err := scanLife(rows, l, &stream); err != nil {
			return nil, err
		}
		l.Stream = b.streams.byID[stream]
		lives[l.ObjectID] = l
	}
	return lives, rows.Err()
}

// fromDeltas finds the objects that were live.
func (b *rebuilding) fromDeltas(ctx context.Context, tx pgx.Tx) (*search, error) {
	bounds, err := b.caughtUp(ctx, tx)
	if err != nil {
		return nil, err
	}
	lives := make(map[int64]*Life)
	var targets []target
	sure, last := b.point.sure(b.scope), max(b.point.Seq, b.point.Until)
	sql, args := b.record.livesQuery(LifeQuery{Scope: b.scope, BornBy: last, EndedAfter: sure}, 0, b.streams)
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		l := new(Life)
		var stream int32
		if err := scanLife(rows, l, &stream); err != nil {
			return nil, fmt.Errorf("read the lives of the record: %w", err)
		}
		bound := max(b.point.Seq, bounds[l.ObjectID])
		if l.ObjectID > bound {
			continue
		}
		l.Stream = b.streams.byID[stream]
		lives[l.ObjectID] = l
		targets = append(targets, target{id: l.ObjectID, bound: bound})
		if l.ObjectID > b.point.Seq {
			b.heir(l)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return b.outlived(lives[t.id]) })
	return &search{lives: lives, targets: targets}, nil
}

// caughtUp gives, of each object that was caught up on after the point and changed by then, the last delta that belongs to it.
func (b *rebuilding) caughtUp(ctx context.Context, tx pgx.Tx) (map[int64]int64, error) {
	bounds := make(map[int64]int64)
	if b.point.Until <= b.point.Seq {
		return bounds, nil
	}
	in, out := b.point.crossings()
	days, err := b.record.daysFrom(ctx, tx, b.point.Seq+1, b.point.Until)
	if err != nil {
		return nil, err
	}
	for i := range days {
		d := &days[i]
		if err := b.record.present(ctx, tx, d); err != nil {
			return nil, err
		}
		rows, err := tx.Query(ctx, `
			SELECT object_id, max(seq) FROM kuberewind.record_deltas
			WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5
				AND (occurred_at <= $6 AND seq <> ALL ($8::bigint[]) OR seq = ANY ($7::bigint[]))
			GROUP BY object_id`, b.record.cluster.Number, b.point.Seq, b.point.Until, d.firstAt, d.lastAt, b.point.Time, in, out)
		if err != nil {
			return nil, err
		}
		var id, seq int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
			bounds[id] = seq
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read what was caught up on: %w", err)
		}
	}
	return bounds, nil
}

// findAll folds objects from their deltas and gives the living ones.
func (b *rebuilding) findAll(ctx context.Context, db querier, workers int, s *search) error {
	lives, targets := s.lives, s.targets
	if len(targets) == 0 {
		return nil
	}
	slices.SortFunc(targets, func(x, y target) int { return cmp.Compare(x.id, y.id) })
	last := int64(0)
	for i := range targets {
		t := &targets[i]
		if l := lives[t.id]; b.point.RV != "" && l != nil && l.Stream != nil {
			at := b.point.streams[l.Stream.ID]
			t.bound, t.from = min(t.bound, at.seq), at.from
		}
		last = max(last, t.bound)
	}
	days, err := b.record.daysFrom(ctx, db, targets[0].id, last)
	if err != nil {
		return err
	}
	find := finder{record: b.record, rv: b.point.RV, workers: workers}
	total := int64(len(targets))
	missing, err := find.find(ctx, db, targets, days, func(v *lastVersion) error {
		b.tell("objects", b.objects.Load(), total)
		return b.found(lives[v.id], v)
	})
	if err != nil {
		return err
	}
	return b.notFound(lives, missing)
}

func (b *rebuilding) found(l *Life, v *lastVersion) error {
	if l == nil {
		l = &Life{ObjectID: v.id}
	}
	if v.kind == delta.NumberDeleted {
		return nil // also where its last version is not on the same day
	}
	if v.err != nil {
		return b.hurt(&DamagedError{Seq: v.seq, ObjectID: v.id, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, Root: v.seq, Err: v.err})
	}
	object := l.object()
	object.Seq, object.RV, object.Version, object.Doc = v.seq, v.rv, v.version, v.doc
	object.ObservedAt, object.OccurredAt = v.observed.UTC(), v.occurred.UTC()
	return b.give(&object)
}

// notFound reports objects that lived, and that have no row. By resource version that may be right: a list between showed them
// first, in a later version.
func (b *rebuilding) notFound(lives map[int64]*Life, missing []target) error {
	for _, t := range missing {
		l := lives[t.id]
		if l == nil || l.ObjectID > b.point.sure(b.scope) {
			continue
		}
		err := b.hurt(&DamagedError{Seq: l.ObjectID, ObjectID: t.id, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, Root: l.ObjectID, Err: ErrNoKeyframe})
		if err != nil {
			return err
		}
	}
	return nil
}
