package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A mark is one that the browser drew.
type mark struct {
	Seq int64
	At  float64 // milliseconds since 1970
}

// Commits writes into a record, so many changes of one object in each round, and takes what each needs from its commit to its mark on the open page.
func Commits(ctx context.Context, run *measure.Run, record Record, changes int) error {
	tab, err := newTab()
	if err != nil {
		return err
	}
	return inBench(ctx, run, record, func(b *bench) error { return b.Do(ctx, b.commits(tab, changes)) })
}

// commits follows the end of the record.
func (b *bench) commits(t *tab, changes int) measure.Experiment {
	const late, usual = "p99", "median"
	way := measure.Way{Name: "commit to mark", Run: func(ctx context.Context, round int) (measure.Values, error) {
		w, err := b.newWriter(ctx)
		if err != nil {
			return nil, err
		}
		defer w.close()
		took, err := b.watched(ctx, t, w, round, changes)
		return measure.Values{late: percentile(took, 99), usual: measure.Median(took)}, err
	}}
	e := b.experiment("commit", "A change, from its commit to its mark", []measure.Quantity{{Name: late, Unit: "ms"}, {Name: usual, Unit: "ms"}}, []measure.Way{way}, limit{way.Name, late, 1000, 700})
	e.WarmUp = false
	return e
}

// pause is how far apart two commits are at least, and at most twice that.
const pause = 300 * time.Millisecond

// watched commits while a browser looks, and gives what each change took, in milliseconds.
func (b *bench) watched(ctx context.Context, t *tab, w *writer, round, changes int) (took []float64, err error) {
	v, err := t.begin(ctx, &b.served, "commits", map[string]any{"lane": w.life.ObjectID})
	if err != nil {
		return nil, err
	}
	if err := v.read(new(any)); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(b.Report.Seed, uint64(round)))
	var all []mark
	for range changes {
		seq, err := w.change(ctx)
		if err != nil {
			return nil, errors.Join(err, v.end())
		}
		all = append(all, mark{seq, float64(time.Now().UnixMicro()) / 1000})
		select {
		case <-time.After(pause + time.Duration(random.Int64N(int64(pause)))):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), v.end())
		}
	}
	_ = v.in.Close() // The browser waits for the last mark, and says what it saw.
	var seen []mark
	if err := v.read(&seen); err != nil {
		return nil, err
	}
	for next, i := 0, 0; i < len(all); i++ {
		for next < len(seen) && seen[next].Seq < all[i].Seq {
			next++
		}
		if next == len(seen) {
			return nil, errors.Join(fmt.Errorf("%w: no mark of seq %d was drawn", errAnswer, all[i].Seq), v.end())
		}
		took = append(took, seen[next].At-all[i].At)
	}
	return took, v.end()
}

// A writer changes one object, as a recorder would write it.
type writer struct {
	pool   *pgxpool.Pool
	sink   *postgres.Sink
	stream *postgres.Stream
	life   history.Life
	doc    patch.Doc
	began  time.Time // by this machine
	end    time.Time // of the record, then
	last   int64     // its resource version
}

// newWriter takes the record over. It changes the object that changed most in its last hour.
func (b *bench) newWriter(ctx context.Context) (w *writer, err error) {
	record, err := history.Open(ctx, b.record.URL, history.Options{})
	if err != nil {
		return nil, err
	}
	defer record.Close()
	w = &writer{began: time.Now()}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := w.choose(ctx, b, record); err != nil {
		return nil, err
	}
	if w.pool, err = postgres.NewPool(ctx, b.record.URL, "kuberewind bench"); err != nil {
		return nil, err
	}
	var fingerprint []byte
	if err := w.pool.QueryRow(ctx, `SELECT key_fingerprint FROM kuberewind.clusters`).Scan(&fingerprint); err != nil {
		return nil, err
	}
	cluster := record.Cluster()
	if w.sink, err = postgres.Open(ctx, postgres.Config{
		Pool: w.pool, ClusterUID: cluster.UID, ClusterName: cluster.Name, KeyFingerprint: fingerprint, Recorder: "bench", Version: "bench", Now: w.now,
	}); err != nil {
		return nil, err
	}
	s := w.life.Stream
	if w.stream, err = w.sink.Stream(ctx, postgres.StreamSpec{Group: s.Group, Resource: s.Resource, Version: s.Version, Kind: s.Kind, Namespaced: s.Namespaced}); err != nil {
		return nil, err
	}
	w.last, err = strconv.ParseInt(w.stream.Newest(), 10, 64)
	return w, err
}

// choose finds the object.
func (w *writer) choose(ctx context.Context, b *bench, record *history.Record) error {
	head, err := record.Extent(ctx)
	if err != nil {
		return err
	}
	w.end = head.LastAt
	query := lanesOf(window{w.end.Add(-time.Hour), w.end})
	found, _, err := b.client.ask(ctx, "lanes", query)
	for err == nil && found.Older != "" { // The page shows the lanes in the order that they have when all is counted.
		query.Set("cursor", found.Older)
		found, _, err = b.client.ask(ctx, "lanes", query)
	}
	if err != nil {
		return err
	}
	for _, l := range found.Lanes {
		docs, _, err := record.Lookup().LastVersions(ctx, []int64{l.ID}, head.LastSeq)
		if err != nil {
			return err
		}
		if w.doc = docs[l.ID]; w.doc == nil {
			continue // It is gone.
		}
		for life, err := range record.Lives(ctx, history.LifeQuery{ObjectIDs: []int64{l.ID}}) {
			w.life = life
			return err
		}
	}
	return fmt.Errorf("%w: no object of the last hour lives", errAnswer)
}

func (w *writer) close() {
	if w.sink != nil {
		w.sink.Close()
	}
	if w.pool != nil {
		w.pool.Close()
	}
}

// now goes on where the record ended, as fast as the clock of this machine.
func (w *writer) now() time.Time { return w.end.Add(time.Since(w.began)) }

// change commits one more version of the object, and gives its seq.
func (w *writer) change(ctx context.Context) (seq int64, err error) {
	var object map[string]any
	numbers := json.NewDecoder(bytes.NewReader(w.doc))
	numbers.UseNumber()
	if err := numbers.Decode(&object); err != nil {
		return 0, err
	}
	w.last++
	meta, _ := object["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.FormatInt(w.last, 10)
	annotations, _ := meta["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations["bench"] = meta["resourceVersion"]
	meta["annotations"] = annotations
	text, err := json.Marshal(object)
	if err != nil {
		return 0, err
	}
	if w.doc, err = patch.Canonical(text); err != nil {
		return 0, err
	}
	version, err := kube.Restore(w.doc)
	if err != nil {
		return 0, err
	}
	batch, err := w.sink.Encode([]postgres.Item{{
		Stream: w.stream.ID(), Kind: postgres.Delta, Type: delta.Updated, Source: delta.SourceWatch, Observed: w.now(), Object: version, Version: w.life.Stream.Version,
		Position: version.GetResourceVersion(),
	}})
	if err != nil {
		return 0, err
	}
	seq = batch.LastSeq()
	return seq, w.sink.Commit(ctx, batch)
}
