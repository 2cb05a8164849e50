package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/internal/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// CheckpointOptions of a Checkpointer. Zero values mean the defaults.
type CheckpointOptions struct {
	// EveryDeltas is after how many deltas the next checkpoint is made. 0 means five for each living object, and at least
	// 20,000.
	EveryDeltas int64
	// KeepAll is how long every checkpoint is kept; of the days before, the last of each is. 0 means two days.
	KeepAll time.Duration
	// KeepDays is how long the last one of a day is kept; 0 means as long as the record goes back.
	KeepDays time.Duration
	// CheckEvery is how often Run looks whether one is due; 0 means a minute.
	CheckEvery time.Duration
	// Busy is which part of the time MakeOne may work, while it makes blocks; 0 means half. 1 is without a rest.
	Busy float64
	// Log is told what Run cannot return; nil means nobody.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// The interval balances bytes against time. A checkpoint costs some 60 to 400 bytes an object, so that one for every five deltas of each living
// object adds at most 80 bytes to a delta of about 640. At a checkpoint a rebuild takes 4 µs an object, and each delta after it 13 to 20 µs: five for
// each object make it 76 µs an object, ten 129, and there it would be as fast without a checkpoint, from the deltas of a few days
// (go test ./history -run '^$' -bench Rebuild). Below 20,000 deltas the tail is read within a moment, however few the objects are.
const (
	deltasPerObject = 5
	leastDeltas     = 20_000
)

// A Checkpointer makes the checkpoints of a cluster and thins them out. It needs one connection that may read the record and
// may insert into and delete from checkpoints and checkpoint_blocks: the writer's role.
type Checkpointer struct {
	pool    *pgxpool.Pool
	record  *Record
	options CheckpointOptions
}

// NewCheckpointer makes a Checkpointer that works through a pool of its owner's.
func NewCheckpointer(pool *pgxpool.Pool, cluster Cluster, o CheckpointOptions) *Checkpointer {
	if o.KeepAll == 0 {
		o.KeepAll = 48 * time.Hour
	}
	if o.CheckEvery == 0 {
		o.CheckEvery = time.Minute
	}
	if o.Busy <= 0 || o.Busy > 1 {
		o.Busy = 0.5
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Checkpointer{pool: pool, record: newRecord(pool, cluster, o.Log), options: o}
}

// Run makes a checkpoint whenever one is due, until ctx ends, which is no error. What fails is logged, and tried again later:
// without checkpoints nothing is wrong, only slower.
func (c *Checkpointer) Run(ctx context.Context) error {
	ticker := time.NewTicker(c.options.CheckEvery)
	defer ticker.Stop()
	for {
		if err := c.makeDue(ctx); err != nil && ctx.Err() == nil {
			c.options.Log.WarnContext(ctx, "no checkpoint was made; rebuilding takes longer until one is", "cluster", c.record.cluster.Name, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (c *Checkpointer) makeDue(ctx context.Context) error {
	due, err := c.Due(ctx)
	if err != nil || !due {
		return err
	}
	info, err := c.MakeOne(ctx)
	if err != nil {
		return err
	}
	c.options.Log.InfoContext(ctx, "made a checkpoint", "cluster", c.record.cluster.Name, "seq", info.Seq, "objects", info.Objects, "blocks", info.Blocks, "bytes", info.Bytes)
	return c.Thin(ctx)
}

// Due reports whether enough deltas came since the last checkpoint.
func (c *Checkpointer) Due(ctx context.Context) (bool, error) {
	var since, live int64
	err := c.pool.QueryRow(ctx, `
		SELECT h.seq - coalesce(p.checkpoint, 0), coalesce(p.objects, 0)
		FROM kuberewind.record_heads h
		LEFT JOIN LATERAL (
			SELECT checkpoint, objects FROM kuberewind.record_checkpoints WHERE cluster = h.cluster ORDER BY checkpoint DESC LIMIT 1
		) p ON true
		WHERE h.cluster = $1`, c.record.cluster.Number).Scan(&since, &live)
	if err != nil {
		return false, fmt.Errorf("look whether a checkpoint is due: %w", err)
	}
	every := c.options.EveryDeltas
	if every == 0 {
		every = max(leastDeltas, deltasPerObject*live)
	}
	return since >= every, nil
}

// ErrNothingNew says that there is a checkpoint at the end of the record already.
var ErrNothingNew = errors.New("there is a checkpoint of this seq already")

// MakeOne makes a checkpoint of the end of the record, from the newest usable one and the deltas after it. Everything is read
// back and compared before the checkpoint is announced, in the one transaction that holds all of it. The error is ErrEmpty,
// ErrNothingNew, a *MissingDayError or one of the database's.
func (c *Checkpointer) MakeOne(ctx context.Context) (info CheckpointInfo, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		m := &making{checkpointer: c, record: c.record, tx: tx, encoder: checkpoint.NewEncoder()}
		info, err = m.run(ctx)
		return err
	})
	if err != nil {
		return CheckpointInfo{}, fmt.Errorf("make a checkpoint: %w", err)
	}
	return info, nil
}

// A making is one checkpoint on its way.
type making struct {
	checkpointer *Checkpointer
	record       *Record
	tx           pgx.Tx
	encoder      *checkpoint.Encoder
	info         CheckpointInfo
	point        Point
	pending      []checkpoint.Record // of the next block
	pendingBytes int
	first        []checkpoint.Key
	digests      [][]byte // of the blocks with records
	began        time.Time
}

func (m *making) run(ctx context.Context) (CheckpointInfo, error) {
	// The queries of one connection are planned for their parameters here too. And it rests within the transaction, after a long tail for
	// longer than the pool of the recorder lets a transaction be idle.
	if _, err := m.tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off; SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		return m.info, err
	}
	if err := m.start(ctx); err != nil {
		return m.info, err
	}
	b := &rebuilding{record: m.record, point: m.point, workers: 1}
	var err error
	if b.streams, err = m.record.readStreams(ctx, m.tx); err != nil {
		return m.info, err
	}
	m.info.Streams = make(map[int32]string)
	for id, s := range b.streams.byID {
		if s.LastRV != "" {
			m.info.Streams[id] = s.LastRV
		}
	}
	from, err := b.newest(ctx, m.tx)
	if err != nil {
		return m.info, err
	}
	m.began = time.Now()
	if from != nil {
		err = m.fromCheckpoint(ctx, b, from)
	} else {
		err = m.fromDeltas(ctx, b)
	}
	if err == nil {
		err = m.flush(ctx)
	}
	if err == nil {
		err = m.finish(ctx)
	}
	return m.info, err
}

func (m *making) start(ctx context.Context) error {
	extent, err := m.record.extent(ctx, m.tx)
	if err != nil {
		return err
	}
	if extent.FirstSeq == 0 {
		return fmt.Errorf("%w of cluster %s", ErrEmpty, m.record.cluster.Name)
	}
	m.info.Seq, m.info.MadeAt = extent.LastSeq, m.checkpointer.options.Now().UTC()
	exists, err := m.record.hasCheckpoint(ctx, m.tx, m.info.Seq)
	if err != nil {
		return err
	}
	if exists {
		return fmt.Errorf("%w: %d", ErrNothingNew, m.info.Seq)
	}
	m.point = Point{Instant: AtSeq(m.info.Seq), Seq: m.info.Seq}
	f := &pointer{record: m.record, tx: m.tx, extent: extent}
	m.info.ObservedAt, err = f.timeOf(ctx, m.info.Seq)
	return err
}

// fromDeltas makes a checkpoint where there is none to begin with: block by block, each folded from its deltas.
func (m *making) fromDeltas(ctx context.Context, b *rebuilding) error {
	lives, err := m.lives(ctx, b, nil)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(lives, checkpoint.BlockRecords) {
		records, err := m.find(ctx, chunk)
		if err != nil {
			return err
		}
		for _, l := range chunk {
			if err := m.add(ctx, records[l.ObjectID]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lives gives lives in the order of blocks: all that are live, or those of the numbers.
func (m *making) lives(ctx context.Context, b *rebuilding, ids []int64) ([]*Life, error) {
	var lives []*Life
	if ids != nil {
		found, err := b.identities(ctx, m.tx, ids)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			lives = append(lives, l)
		}
	} else {
		for l, err := range m.record.lives(ctx, m.tx, LifeQuery{LiveAt: m.info.Seq}, 0) {
			if err != nil {
				return nil, err
			}
			lives = append(lives, &l)
		}
	}
	slices.SortFunc(lives, func(x, y *Life) int { return cmp.Or(keyOf(x).Compare(keyOf(y)), cmp.Compare(x.ObjectID, y.ObjectID)) })
	return lives, nil
}

func keyOf(l *Life) checkpoint.Key {
	return checkpoint.Key{Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name}
}

// find folds objects from their deltas. One that is damaged is there without a text: who rebuilds from the checkpoint finds it wrong, and
// looks into the deltas himself.
func (m *making) find(ctx context.Context, lives []*Life) (map[int64]*checkpoint.Record, error) {
	records := make(map[int64]*checkpoint.Record, len(lives))
	targets := make([]target, len(lives))
	for i, l := range lives {
		targets[i] = target{id: l.ObjectID, bound: m.info.Seq}
		records[l.ObjectID] = &checkpoint.Record{
			ObjectID: l.ObjectID, Seq: l.ObjectID, Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name, UID: l.UID,
		}
	}
	slices.SortFunc(targets, func(x, y target) int { return cmp.Compare(x.id, y.id) })
	if len(targets) == 0 {
		return records, nil
	}
	days, err := m.record.daysFrom(ctx, m.tx, targets[0].id, m.info.Seq)
	if err != nil {
		return nil, err
	}
	find := finder{record: m.record}
	_, err = find.find(ctx, m.tx, targets, days, func(v *lastVersion) error {
		if v.err == nil {
			r := records[v.id]
			r.Seq, r.RV, r.Version, r.Doc, r.Digest = v.seq, v.rv, v.version, v.doc, patch.Digest(v.doc)
		}
		return nil
	})
	return records, err
}

// fromCheckpoint merges a checkpoint with what the deltas after it say. Both are in the order of blocks.
func (m *making) fromCheckpoint(ctx context.Context, b *rebuilding, from *saved) error {
	t, err := m.record.readTail(ctx, m.tx, &m.point, Scope{}, from.info.Seq, nil)
	if err != nil {
		return err
	}
	var born []int64
	for id, o := range t.objects {
		if id > from.info.Seq && !o.dead {
			born = append(born, id)
		}
	}
	lives := []*Life{}
	if len(born) > 0 {
		if lives, err = m.lives(ctx, b, born); err != nil {
			return err
		}
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	for _, number := range from.blocks {
		data, err := m.record.block(ctx, m.tx, from.info.Seq, number)
		if err != nil {
			return err
		}
		records, err := decoder.Block(data)
		if err != nil {
			return err
		}
		for i := range records {
			for len(lives) > 0 && keyOf(lives[0]).Compare(records[i].Key()) < 0 {
				if err := m.addLife(ctx, lives[0], t); err != nil {
					return err
				}
				lives = lives[1:]
			}
			if err := m.addSaved(ctx, &records[i], t); err != nil {
				return err
			}
		}
	}
	for _, l := range lives {
		if err := m.addLife(ctx, l, t); err != nil {
			return err
		}
	}
	return nil
}

func (m *making) addLife(ctx context.Context, l *Life, t *tail) error {
	r := &checkpoint.Record{ObjectID: l.ObjectID, Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name, UID: l.UID}
	return m.addFolded(ctx, r, l, t.objects[l.ObjectID])
}

func (m *making) addSaved(ctx context.Context, r *checkpoint.Record, t *tail) error {
	changed := t.objects[r.ObjectID]
	life := &Life{ObjectID: r.ObjectID, Stream: &Stream{ID: r.Stream}, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	switch {
	case changed == nil && patch.Digest(r.Doc) != r.Digest:
		return m.addFound(ctx, life)
	case changed == nil:
		return m.add(ctx, r)
	case changed.dead:
		return nil
	}
	return m.addFolded(ctx, r, life, changed)
}

func (m *making) addFolded(ctx context.Context, r *checkpoint.Record, l *Life, changed *tailObject) error {
	doc, err := changed.fold(r.Doc)
	if err != nil {
		return m.addFound(ctx, l)
	}
	last := changed.last()
	r.Seq, r.RV, r.Version, r.Doc, r.Digest = last.seq, last.rv, last.version, doc, last.digest
	return m.add(ctx, r)
}

func (m *making) addFound(ctx context.Context, l *Life) error {
	records, err := m.find(ctx, []*Life{l})
	if err != nil {
		return err
	}
	return m.add(ctx, records[l.ObjectID])
}

func (m *making) add(ctx context.Context, r *checkpoint.Record) error {
	m.pending = append(m.pending, *r)
	m.pendingBytes += len(r.Doc)
	if len(m.pending) < checkpoint.BlockRecords && m.pendingBytes < checkpoint.BlockBytes {
		return nil
	}
	return m.flush(ctx)
}

// flush writes a block, and rests.
func (m *making) flush(ctx context.Context) error {
	if len(m.pending) == 0 {
		return nil
	}
	m.first = append(m.first, m.pending[0].Key())
	data := m.encoder.Block(m.pending)
	digest, err := m.insert(ctx, len(m.first), len(m.pending), data)
	if err != nil {
		return err
	}
	m.digests = append(m.digests, digest)
	m.info.Objects += int64(len(m.pending))
	clear(m.pending)
	m.pending, m.pendingBytes = m.pending[:0], 0
	return m.rest(ctx)
}

func (m *making) rest(ctx context.Context) error {
	busy := m.checkpointer.options.Busy
	if busy == 1 {
		return nil
	}
	timer := time.NewTimer(time.Duration(float64(time.Since(m.began)) * (1 - busy) / busy))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	m.began = time.Now()
	return nil
}

func (m *making) insert(ctx context.Context, number, objects int, data []byte) (digest []byte, err error) {
	sum := sha256.Sum256(data)
	_, err = m.tx.Exec(ctx, `
		INSERT INTO kuberewind.checkpoint_blocks (cluster, checkpoint, block, objects, digest, data) VALUES ($1, $2, $3, $4, $5, $6)`,
		m.record.cluster.Number, m.info.Seq, number, objects, sum[:], data)
	if err != nil {
		return nil, fmt.Errorf("write block %d: %w", number, err)
	}
	m.info.Bytes += int64(len(data))
	m.info.Blocks++
	return sum[:], nil
}

// finish writes the directory, reads everything back, and announces the checkpoint.
func (m *making) finish(ctx context.Context) error {
	directory, err := m.insert(ctx, 0, 0, m.encoder.Directory(m.first))
	if err != nil {
		return err
	}
	all := sha256.New()
	all.Write(directory)
	for _, digest := range m.digests {
		all.Write(digest)
	}
	m.info.Digest = all.Sum(nil)
	if err := m.readBack(ctx); err != nil {
		return fmt.Errorf("read it back: %w", err)
	}
	_, err = m.tx.Exec(ctx, `
		INSERT INTO kuberewind.checkpoints (cluster, checkpoint, observed_at, made_at, objects, blocks, bytes, digest, streams)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		m.record.cluster.Number, m.info.Seq, m.info.ObservedAt, m.info.MadeAt, m.info.Objects, m.info.Blocks, m.info.Bytes, m.info.Digest, m.info.Streams)
	return err
}

// readBack compares what the database holds with what was written: the blocks with their digests, and each object with its own.
func (m *making) readBack(ctx context.Context) error {
	found, err := m.record.usable(ctx, m.tx, m.info, Scope{})
	if err != nil {
		return err
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	for _, number := range found.blocks {
		data, err := m.record.block(ctx, m.tx, m.info.Seq, number)
		if err != nil {
			return err
		}
		records, err := decoder.Block(data)
		if err != nil {
			return err
		}
		for i := range records {
			if r := &records[i]; len(r.Doc) > 0 && patch.Digest(r.Doc) != r.Digest {
				return fmt.Errorf("%w: object %d of block %d has another digest", errUnusable, r.ObjectID, number)
			}
		}
		if err := m.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Thin deletes checkpoints that are not worth their bytes: it keeps all of the last two days, and of each day before the last one. What is
// from before the oldest day of the record is of no use.
func (c *Checkpointer) Thin(ctx context.Context) error {
	extent, err := c.record.Extent(ctx)
	if err != nil {
		return err
	}
	infos, err := c.record.Checkpoints(ctx)
	if err != nil {
		return err
	}
	drop := dispensable(infos, extent, c.options.KeepAll, c.options.KeepDays)
	if len(drop) == 0 {
		return nil
	}
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		for _, table := range []string{"checkpoints", "checkpoint_blocks"} {
			if _, err := tx.Exec(ctx, `DELETE FROM kuberewind.`+table+` WHERE cluster = $1 AND checkpoint = ANY ($2::bigint[])`, c.record.cluster.Number, drop); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("thin out checkpoints: %w", err)
	}
	return nil
}

// dispensable picks the checkpoints, newest first, that are not kept. Ages count from the end of the record, not from now: a record that has ended keeps
// what it has.
func dispensable(infos []CheckpointInfo, extent Extent, keepAll, keepDays time.Duration) (drop []int64) {
	var day time.Time
	for i, c := range infos {
		at := c.ObservedAt.UTC().Truncate(24 * time.Hour)
		lastOfDay := !at.Equal(day)
		day = at
		age := extent.LastAt.Sub(c.ObservedAt)
		switch {
		case c.Seq < extent.FirstSeq:
			drop = append(drop, c.Seq)
		case i == 0 || age <= keepAll:
		case !lastOfDay || keepDays != 0 && age > keepDays:
			drop = append(drop, c.Seq)
		}
	}
	return drop
}
