package postgres

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
)

// A manyLived makes items of many objects, which change, end, and begin again under their names.
type manyLived struct {
	t    *testing.T
	uids []string
	rv   int
}

const manyObjects = 5 * livesEach

func (m *manyLived) object(i int) *object {
	m.rv++
	text := "plain"
	if i%5 == 0 {
		text = `no text for SQL: \u0000`
	}
	o := made(m.t, "a", fmt.Sprintf("x-%d", i), m.uids[i], fmt.Sprint(m.rv), fmt.Sprintf(`{"n":%d,"list":[%d,%d],"text":"%s"}`, m.rv, i, m.rv%7, text))
	written := noon.Add(time.Duration(m.rv) * time.Second).Format(time.RFC3339)
	return o.managed(m.t, fmt.Sprintf(`{"manager":"manager-%d","time":%q}`, m.rv%5, written))
}

func (m *manyLived) items(st *Stream) (items []Item) {
	m.rv, m.uids = 100, nil
	for i := range manyObjects {
		m.uids = append(m.uids, fmt.Sprintf("00000000-0000-4000-8000-%012x", i))
		items = append(items, watched(st, delta.Added, m.object(i)))
	}
	for round := range 5 {
		for i := range manyObjects {
			switch o := m.object(i); {
			case i%17 == 3 && round > 0:
				// A list reports the end, a day after the last version.
				if round == 3 {
					items = append(items, gone(st, o, o.rv))
				}
			case i%7 == 0 && round == 2:
				items = append(items, watched(st, delta.Deleted, o))
			case i%7 == 0 && round == 3, i%11 == 5 && round == 4:
				// The second life begins although no item reports the end of the first.
				m.uids[i] = fmt.Sprintf("00000000-0000-4000-9000-%012x", i)
				again := m.object(i)
				items = append(items, watched(st, delta.Added, again), watched(st, delta.Added, again))
			case i%13 == 1 && round == 3:
				items = append(items, gone(st, o, o.rv))
			default:
				items = append(items, watched(st, delta.Updated, o))
			}
		}
	}
	for i := range items {
		items[i].Observed, items[i].Version = noon.Add(time.Duration(i)*time.Millisecond), "v1"
		if i > len(items)/2 {
			items[i].Observed = items[i].Observed.Add(12 * time.Hour) // the next day
		}
	}
	return items
}

// A storedRow is a row of deltas_data, without the cluster.
type storedRow struct {
	Seq, ObjectID    int64
	Observed         time.Time
	Type, Source     int16
	RV               string
	Manager          *string
	Digest           []byte
	Patch, Obj       *string
	Exact            []byte
	Namespace, Named string
	UID              types.UID
	Deleted          *int64
}

func (r *recording) stored() []storedRow {
	r.t.Helper()
	rows, err := r.db.admin.Query(context.Background(), `
		SELECT d.seq, d.object_id, d.observed_at, d.type, d.source, d.rv, d.manager, d.digest, d.patch::text, d.object::text, d.exact, l.namespace, l.name, l.uid, l.deleted_seq
		FROM kuberewind.deltas_data d JOIN kuberewind.record_lives l USING (cluster, object_id) WHERE d.cluster = $1 ORDER BY d.seq`, r.cluster())
	require.NoError(r.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[storedRow])
	require.NoError(r.t, err)
	return all
}

func TestOneBatchRecordsTheSameAsABatchPerItem(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	db := newDatabase(t)
	m := &manyLived{t: t}
	whole, single := record(t, db), record(t, db)
	whole.commit(m.items(whole.pods())...)
	require.Greater(t, len(whole.sink.encoder.drafts.comparers), 1, "it took several goroutines")

	var batch []*Batch
	for _, item := range m.items(single.pods()) {
		batch = append(batch, single.encode(item))
	}
	for _, b := range batch {
		require.NoError(t, single.sink.Commit(t.Context(), b))
	}
	want := single.stored()
	require.Equal(t, want, whole.stored())
	patches, proved := 0, 0
	for _, r := range want {
		if r.Obj == nil && r.Patch != nil {
			patches++
		}
		if r.Manager != nil {
			proved++
		}
	}
	require.Greater(t, patches, 2*manyObjects)
	require.Greater(t, proved, manyObjects)
	whole.history()
	for _, r := range []*recording{whole, single} {
		r.verify()
	}
	require.ElementsMatch(t, single.pods().Known().ListKeys(), whole.pods().Known().ListKeys())
	for _, key := range whole.pods().Known().ListKeys() {
		require.Equal(t, *single.pods().Known().mustGet(key), *whole.pods().Known().mustGet(key), key)
	}
}

func TestTheMemoryOfComparersIsBounded(t *testing.T) {
	c := comparer{before: make([]byte, 100), changes: make([]byte, 100), packed: make([]byte, 100)}
	c.forget()
	require.Empty(t, c.changes)
	require.Equal(t, []int{100, 100, 100}, []int{cap(c.before), cap(c.changes), cap(c.packed)}, "it is used again")
	big := make([]byte, maxSpare/maxComparers)
	for _, c := range []comparer{{before: big, packed: make([]byte, 1)}, {before: make([]byte, 1), changes: big}, {changes: make([]byte, 1), packed: big}} {
		c.forget()
		require.Zero(t, cap(c.before)+cap(c.changes)+cap(c.packed))
	}
}
