package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/indexer"
	"github.com/kuberewind/kuberewind/patch"
)

// A built is a cluster at one instant.
type built struct {
	snapshot *indexer.Snapshot
	stats    history.RebuildStats
}

// rebuild is what replay does: it finds the instant and folds what was live.
func rebuild(ctx context.Context, record *history.Record, at history.Instant, o history.RebuildOptions) (b built, err error) {
	b.snapshot = indexer.NewSnapshot(nil, indexer.Options{})
	point, err := record.Resolve(ctx, at, history.Scope{})
	if err != nil {
		return b, err
	}
	b.stats, err = record.Rebuild(ctx, point, history.Scope{}, o, func(o history.Object) error {
		return b.snapshot.AddDoc(o.Stream.GroupResource(), o.Namespace, o.Name, o.RV, o.Doc)
	})
	if err == nil && len(b.stats.Notes) > 0 {
		err = fmt.Errorf("the rebuild is not what is measured: %s", b.stats.Notes[0])
	}
	return b, err
}

// A plain is a way to ask full rows for the last version of each object.
type plain struct {
	name, sql string
}

// Two spellings: the sort order of the first is the one that everybody writes, that of the second is the index backwards. The
// faster one counts.
var plains = []plain{
	{"object_id, seq DESC", `SELECT object FROM (
		SELECT DISTINCT ON (object_id) type, object FROM bench.full_rows WHERE seq <= $1 ORDER BY object_id, seq DESC) AS last WHERE type <> 'Deleted'`},
	{"object_id DESC, seq DESC", `SELECT object FROM (
		SELECT DISTINCT ON (object_id) type, object FROM bench.full_rows WHERE seq <= $1 ORDER BY object_id DESC, seq DESC) AS last WHERE type <> 'Deleted'`},
}

// resources finds where an object of full_rows belongs.
var resources = map[string]schema.GroupResource{
	`"Pod"`: {Resource: "pods"}, `"Node"`: {Resource: "nodes"}, `"Event"`: {Resource: "events"}, `"ConfigMap"`: {Resource: "configmaps"},
	`"Deployment"`: {Group: "apps", Resource: "deployments"}, `"ReplicaSet"`: {Group: "apps", Resource: "replicasets"},
	`"Job"`: {Group: "batch", Resource: "jobs"}, `"Lease"`: {Group: "coordination.k8s.io", Resource: "leases"},
}

// decodeChunk is how many rows a decoder takes at once.
const decodeChunk = 256

// fromFullRows makes the same snapshot of full rows, with as many decoders as Rebuild has.
func fromFullRows(ctx context.Context, db *pgxpool.Pool, p plain, seq int64) (b built, err error) {
	b.snapshot = indexer.NewSnapshot(nil, indexer.Options{})
	work, ctx := errgroup.WithContext(ctx)
	chunks := make(chan [][]byte)
	work.Go(func() error {
		defer close(chunks)
		rows, err := db.Query(ctx, p.sql, seq)
		if err != nil {
			return err
		}
		defer rows.Close()
		var chunk [][]byte
		for more := true; more; {
			if more = rows.Next(); more {
				var object []byte
				if err := rows.Scan(&object); err != nil {
					return err
				}
				chunk = append(chunk, object)
			}
			if len(chunk) == decodeChunk || !more && len(chunk) > 0 {
				select {
				case chunks <- chunk:
				case <-ctx.Done():
					return ctx.Err()
				}
				chunk = nil
			}
		}
		return rows.Err()
	})
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() error {
			for chunk := range chunks {
				for _, object := range chunk {
					doc, err := patch.Canonical(object)
					if err != nil {
						return err
					}
					kind, _ := patch.Get(doc, "/kind")
					if err := b.snapshot.Add(resources[string(kind)], doc); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err = work.Wait(); err != nil {
		return b, fmt.Errorf("full rows up to %d: %w", seq, err)
	}
	return b, nil
}

// A fingerprint is equal for equal snapshots: the sum of the digests of their objects, and their number.
type fingerprint struct {
	objects int
	sum     [4]uint64
}

func fingerprintOf(s *indexer.Snapshot) (f fingerprint) {
	for item := range s.All() {
		h := sha256.New()
		fmt.Fprintf(h, "%s\x00%s\x00", item.Resource, item.Key)
		h.Write(item.Doc)
		digest := h.Sum(nil)
		for i := range f.sum {
			f.sum[i] += binary.LittleEndian.Uint64(digest[8*i:])
		}
		f.objects++
	}
	return f
}

// errDiffers says that two ways gave different answers.
var errDiffers = errors.New("the answers differ")

func sameSnapshot(seq int64, way string, got, want fingerprint) error {
	if got != want {
		return fmt.Errorf("%w: at seq %d, %s gives %d objects (%x) and the first way %d (%x)", errDiffers, seq, way, got.objects, got.sum, want.objects, want.sum)
	}
	return nil
}
