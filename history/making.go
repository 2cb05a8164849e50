package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// A making is one checkpoint on its way.
type making struct {
	checkpointer *Checkpointer
	record       *Record
	tx           pgx.Tx
	encoder      *checkpoint.Encoder
	info         checkpoint.Info
	point        Point
	pending      []checkpoint.Record // of the next block
	pendingBytes int
	first        []checkpoint.Key
	digests      [][]byte // of the blocks with records
	copied       map[int32]bool
	began        time.Time
}

// beginMaking begins the transaction. After a long tail the transaction rests for longer than the recorder's pool allows. Both
// statements are one message, so nothing is idle before the limit is off.
const beginMaking = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = 0"

func (m *making) run(ctx context.Context) (checkpoint.Info, error) {
	// An erasure waits for this lock, and this waits for an erasure before it reads. So an erased value does not come back in a
	// checkpoint. The queries of one connection are planned for their parameters here too.
	if _, err := m.tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off;
		LOCK TABLE kuberewind.checkpoints IN ROW EXCLUSIVE MODE`); err != nil {
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
	exists, err := m.record.checkpoints(m.tx).Has(ctx, m.info.Seq)
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

// find folds objects from their deltas. A damaged object has no text: a rebuild from the checkpoint finds it wrong, and reads
// the deltas itself.
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

// readBack compares the database with what was written: the blocks with their digests, and each object of new blocks with its
// own. Copied blocks were compared when they were new.
func (m *making) readBack(ctx context.Context) error {
	found, err := m.record.checkpoints(m.tx).Open(ctx, m.info, checkpoint.Scope{})
	if err != nil {
		return err
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	for _, number := range found.Blocks {
		if m.copied[number] {
			continue
		}
		data, err := found.Block(ctx, number)
		if err != nil {
			return err
		}
		records, err := decoder.Block(data)
		if err != nil {
			return err
		}
		for i := range records {
			if r := &records[i]; len(r.Doc) > 0 && patch.Digest(r.Doc) != r.Digest {
				return fmt.Errorf("%w: object %d of block %d has another digest", checkpoint.ErrUnusable, r.ObjectID, number)
			}
		}
		if err := m.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}
