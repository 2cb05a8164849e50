package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// The names of the children.
const (
	baselineChild = "baseline"
	bareChild     = "bare"
)

// Children are the parts of the suite that run in processes of their own.
func Children() measure.Children {
	return measure.Children{baselineChild: baseline, bareChild: bare}
}

// makeFullRows is the table of those who write every version whole. Names stand in each row, as is usual; the one index beside the key answers
// what every auditor asks: the history of an object. Large values are compressed as the server is set: with lz4 where it can.
const makeFullRows = `
	CREATE TABLE full_rows (
		id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		observed_at      timestamptz NOT NULL,
		type             text        NOT NULL,
		api_group        text        NOT NULL,
		resource         text        NOT NULL,
		namespace        text        NOT NULL,
		name             text        NOT NULL,
		uid              uuid        NOT NULL,
		resource_version bigint      NOT NULL,
		object           jsonb       NOT NULL
	);
	CREATE INDEX full_rows_by_object ON full_rows (resource, namespace, name, id)`

var fullColumns = []string{"observed_at", "type", "api_group", "resource", "namespace", "name", "uid", "resource_version", "object"}

const insertFullRow = `INSERT INTO full_rows (observed_at, type, api_group, resource, namespace, name, uid, resource_version, object)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// baselineJob is the child's task.
type baselineJob struct {
	Kubeconfig []byte
	Database   string
	Batch      int   // rows of a COPY; 0 is an INSERT for each event
	Marks      []int // numbers of rows whose commit it reports
}

// mark is what it says then.
type mark struct{ Rows int }

// linger is how long a batch waits for more.
const linger = 20 * time.Millisecond

// waiting bounds the rows that wait for the database; informers wait beyond that.
const waiting = 10_000

type fullRow struct {
	observed time.Time
	kind     string
	resource schema.GroupResource
	object   *unstructured.Unstructured
}

func (r *fullRow) values() ([]any, error) {
	text, err := r.object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := r.object
	rv, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("resource version of %s: %w", o.GetName(), err)
	}
	return []any{r.observed, r.kind, r.resource.Group, r.resource.Resource, o.GetNamespace(), o.GetName(), string(o.GetUID()), rv, text}, nil
}

// baseline records as a program does that follows the book: shared informers on the dynamic client, whose handlers hand each event on to one
// that writes.
func baseline(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var job baselineJob
	if err := in.Decode(&job); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(job.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the server says when it is too much
	resources, err := watchable(config)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, job.Database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what counts is committed
	if _, err := conn.Exec(ctx, makeFullRows); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	rows := make(chan fullRow, waiting)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, gvr := range resources {
		if err := follow(ctx, factory.ForResource(gvr).Informer(), gvr.GroupResource(), rows); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	w := &fullWriter{conn: conn, job: job, out: json.NewEncoder(out)}
	return w.run(ctx, rows)
}

// watchable are the resources that can be listed and watched, in the versions that the server prefers.
func watchable(config *rest.Config) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists)
	found, err := discovery.GroupVersionResources(lists)
	if err != nil {
		return nil, err
	}
	var all []schema.GroupVersionResource
	for gvr := range found {
		if gvr.Group != "events.k8s.io" { // the same objects as events
			all = append(all, gvr)
		}
	}
	return all, nil
}

func follow(ctx context.Context, informer cache.SharedIndexInformer, resource schema.GroupResource, rows chan<- fullRow) error {
	hand := func(kind string, object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		select {
		case rows <- fullRow{time.Now(), kind, resource, o}:
		case <-ctx.Done():
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { hand("ADDED", object) },
		UpdateFunc: func(_, object any) { hand("MODIFIED", object) },
		DeleteFunc: func(object any) { hand("DELETED", object) },
	})
	return err
}

type fullWriter struct {
	conn *pgx.Conn
	job  baselineJob
	out  *json.Encoder
	rows int
}

func (w *fullWriter) run(ctx context.Context, rows <-chan fullRow) error {
	for {
		batch, err := w.take(ctx, rows)
		if err != nil {
			return err
		}
		if w.job.Batch == 0 {
			err = w.insert(ctx, batch)
		} else {
			err = w.copy(ctx, batch)
		}
		if err != nil {
			return err
		}
		w.rows += len(batch)
		for len(w.job.Marks) > 0 && w.rows >= w.job.Marks[0] {
			if err := w.out.Encode(mark{w.job.Marks[0]}); err != nil {
				return err
			}
			w.job.Marks = w.job.Marks[1:]
		}
	}
}

// take waits for a row, and then a little for more.
func (w *fullWriter) take(ctx context.Context, rows <-chan fullRow) (batch []fullRow, err error) {
	select {
	case row := <-rows:
		batch = append(batch, row)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if w.job.Batch == 0 {
		return batch, nil
	}
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for len(batch) < w.job.Batch {
		select {
		case row := <-rows:
			batch = append(batch, row)
		case <-timer.C:
			return batch, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return batch, nil
}

func (w *fullWriter) insert(ctx context.Context, batch []fullRow) error {
	for i := range batch {
		values, err := batch[i].values()
		if err != nil {
			return err
		}
		if _, err := w.conn.Exec(ctx, insertFullRow, values...); err != nil {
			return err
		}
	}
	return nil
}

func (w *fullWriter) copy(ctx context.Context, batch []fullRow) error {
	_, err := w.conn.CopyFrom(ctx, pgx.Identifier{"full_rows"}, fullColumns, pgx.CopyFromSlice(len(batch), func(i int) ([]any, error) { return batch[i].values() }))
	return err
}
