package parts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// batchRows is what the recorder puts into one transaction when much waits.
const batchRows = 2000

// clusterName is that of the cluster that is measured, where there is one.
const clusterName = "bench"

// A written is a Set as a sink takes it: decoded, canonical, as it comes out of the recorder's queue.
type written struct {
	resources []data.Resource
	first     []postgres.Item
	events    []postgres.Item
}

// prepare takes so many events of a Set. Streams are numbered in the order in which the resources are opened: from 1.
func prepare(set data.Set, events int, observed time.Time) (*written, error) {
	w := &written{resources: set.Resources()}
	for e := range set.First() {
		item, err := itemOf(&e, w.resources, observed)
		if err != nil {
			return nil, err
		}
		item.Type, item.Source, item.Position = delta.Sync, delta.SourceList, ""
		w.first = append(w.first, item)
	}
	for e, err := range set.Events() {
		if err != nil {
			return nil, err
		}
		if len(w.events) == events {
			return w, nil
		}
		item, err := itemOf(&e, w.resources, observed)
		if err != nil {
			return nil, err
		}
		w.events = append(w.events, item)
	}
	return w, nil
}

func itemOf(e *data.Event, resources []data.Resource, observed time.Time) (item postgres.Item, err error) {
	doc, err := patch.Canonical(e.Object)
	if err != nil {
		return item, fmt.Errorf("%s %s/%s: %w", resources[e.Resource].Resource, e.Namespace, e.Name, err)
	}
	object, err := kube.Restore(doc)
	if err != nil {
		return item, err
	}
	kind := map[watch.EventType]delta.Type{watch.Added: delta.Added, watch.Modified: delta.Updated, watch.Deleted: delta.Deleted}[e.Type]
	return postgres.Item{
		Stream: int32(e.Resource + 1), Kind: postgres.Delta, Type: kind, Source: delta.SourceWatch, Observed: observed, Object: object,
		Position: strconv.FormatUint(e.RV, 10), Version: resources[e.Resource].Version,
	}, nil
}

// openSink opens the sink of a record at a given time, with all streams of a Set.
func openSink(ctx context.Context, database string, resources []data.Resource, now time.Time) (*postgres.Sink, error) {
	return openSinkOf(ctx, database, clusterName, resources, now)
}

// openSinkOf opens the sink of one cluster of several.
func openSinkOf(ctx context.Context, database, cluster string, resources []data.Resource, now time.Time) (*postgres.Sink, error) {
	sink, err := postgres.Open(ctx, postgres.Config{
		URL: database, ClusterUID: "uid of " + cluster, ClusterName: cluster, Recorder: "bench", Version: "bench", Now: func() time.Time { return now },
	})
	if err != nil {
		return nil, err
	}
	for i, r := range resources {
		stream, err := sink.Stream(ctx, postgres.StreamSpec{Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced})
		if err == nil && stream.ID() != int32(i+1) {
			err = errors.New("the streams of this record have other numbers")
		}
		if err != nil {
			sink.Close()
			return nil, err
		}
	}
	return sink, nil
}

// listInto has a database hold what the first lists of a cluster show.
func (w *written) listInto(ctx context.Context, database, cluster string, observed time.Time) error {
	sink, err := openSinkOf(ctx, database, cluster, w.resources, observed)
	if err != nil {
		return err
	}
	defer sink.Close()
	return w.list(ctx, sink, observed)
}

// list records what first lists show.
func (w *written) list(ctx context.Context, sink *postgres.Sink, observed time.Time) error {
	items := w.first[:len(w.first):len(w.first)]
	for i := range w.resources {
		const rv = "1"
		items = append(items, postgres.Item{
			Stream: int32(i + 1), Kind: postgres.Marked, Observed: observed, Position: rv, Marker: delta.Marker{Kind: delta.Replaced, Cause: delta.CauseFirstList, ToRV: rv},
		})
	}
	return write(ctx, sink, items)
}

// write records items as the recorder's pump does when many wait: one batch is encoded while the previous one is committed.
func write(ctx context.Context, sink *postgres.Sink, items []postgres.Item) error {
	return writeBy(ctx, sink, items, batchRows)
}

// writeBy does so with so many items in a batch.
func writeBy(ctx context.Context, sink *postgres.Sink, items []postgres.Item, together int) error {
	both, ctx := errgroup.WithContext(ctx)
	batches := make(chan *postgres.Batch)
	both.Go(func() error {
		defer close(batches)
		for len(items) > 0 {
			n := min(len(items), together)
			batch, err := sink.Encode(items[:n])
			if err != nil {
				return err
			}
			items = items[n:]
			select {
			case batches <- batch:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	both.Go(func() error {
		for batch := range batches {
			if err := sink.Commit(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	return both.Wait()
}

// encode makes all batches of items, and gives what commits them.
func encode(ctx context.Context, sink *postgres.Sink, items []postgres.Item) (commit func() error, err error) {
	var batches []*postgres.Batch
	for len(items) > 0 {
		n := min(len(items), batchRows)
		batch, err := sink.Encode(items[:n])
		if err != nil {
			return nil, err
		}
		items, batches = items[n:], append(batches, batch)
	}
	return func() error {
		for _, batch := range batches {
			if err := sink.Commit(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
