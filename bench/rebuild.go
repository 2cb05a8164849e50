package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/jackc/pgx/v5"
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
	asCame   bool // its texts are not canonical
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

// A plain is a way to ask full rows for the last version of each object: the order in which DISTINCT ON sees them.
type plain string

// Two spellings: the sort order of the first is the one that everybody writes, that of the second is the index backwards. The
// faster one counts.
var plains = []plain{"object_id, seq DESC", "object_id DESC, seq DESC"}

func (p plain) sql() string {
	return `SELECT api_group, resource, namespace, name, rv, object FROM (
		SELECT DISTINCT ON (object_id) type, api_group, resource, namespace, name, rv, object FROM bench.full_rows WHERE seq <= $1 ORDER BY ` + string(p) + `
	) AS last WHERE type <> 'Deleted'`
}

// A fullRow is what is read of the last version of an object.
type fullRow struct {
	resource            schema.GroupResource
	namespace, name, rv string
	object              []byte // as the server writes jsonb
}

// packedAtOnce is how many rows are handed on together to be packed.
const packedAtOnce = 256

// fromFullRows makes the same snapshot of full rows, with as many goroutines that pack as Rebuild has. Nothing of an object is read: the columns say whose it
// is, and its text stays as it came.
func fromFullRows(ctx context.Context, db *pgxpool.Pool, p plain, seq int64) (b built, err error) {
	b = built{snapshot: indexer.NewSnapshot(nil, indexer.Options{}), asCame: true}
	work, ctx := errgroup.WithContext(ctx)
	chunks := make(chan []fullRow)
	work.Go(func() error {
		defer close(chunks)
		return readFullRows(ctx, db, p, seq, chunks)
	})
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() error {
			for chunk := range chunks {
				for _, row := range chunk {
					if err := b.snapshot.AddDoc(row.resource, row.namespace, row.name, row.rv, row.object); err != nil {
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

// readFullRows sends the last versions of what lived. The statement is planned for each seq, which a prepared one may not be from its sixth time on.
func readFullRows(ctx context.Context, db *pgxpool.Pool, p plain, seq int64, chunks chan<- []fullRow) error {
	rows, err := db.Query(ctx, p.sql(), pgx.QueryExecModeExec, seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	var chunk []fullRow
	for more := true; more; {
		if more = rows.Next(); more {
			var row fullRow
			if err := rows.Scan(&row.resource.Group, &row.resource.Resource, &row.namespace, &row.name, &row.rv, &row.object); err != nil {
				return err
			}
			chunk = append(chunk, row)
		}
		if len(chunk) == packedAtOnce || !more && len(chunk) > 0 {
			select {
			case chunks <- chunk:
			case <-ctx.Done():
				return ctx.Err()
			}
			chunk = nil
		}
	}
	return rows.Err()
}

// A fingerprint is equal for equal snapshots: the sum of the digests of their objects, and their number.
type fingerprint struct {
	objects int
	sum     [4]uint64
}

// fingerprintOf is not part of what is measured: texts that are not canonical are made so here.
func fingerprintOf(b built) (f fingerprint, err error) {
	for item := range b.snapshot.All() {
		if b.asCame {
			if item.Doc, err = patch.Canonical(item.Doc); err != nil {
				return f, fmt.Errorf("%s %s: %w", item.Resource, item.Key, err)
			}
		}
		h := sha256.New()
		fmt.Fprintf(h, "%s\x00%s\x00", item.Resource, item.Key)
		h.Write(item.Doc)
		digest := h.Sum(nil)
		for i := range f.sum {
			f.sum[i] += binary.LittleEndian.Uint64(digest[8*i:])
		}
		f.objects++
	}
	return f, nil
}

// errDiffers says that two ways gave different answers.
var errDiffers = errors.New("the answers differ")

func sameSnapshot(seq int64, way string, got, want fingerprint) error {
	if got != want {
		return fmt.Errorf("%w: at seq %d, %s gives %d objects (%x) and the first way %d (%x)", errDiffers, seq, way, got.objects, got.sum, want.objects, want.sum)
	}
	return nil
}
