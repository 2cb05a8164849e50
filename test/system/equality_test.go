package system_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

const (
	// rebuilds is at how many random revisions a random resource is rebuilt and compared with the server's list.
	rebuilds = 200
	// wholeRebuilds is at how many the whole cluster is.
	wholeRebuilds = 12
	// snapshots is how many namespaces are asked of SQL.
	snapshots = 20
)

// moment is a time without writes, and etcd's revision then.
type moment struct {
	at  time.Time
	rev int64
}

// quietMoment waits for a moment at which all of etcd's writes were on record, and no more had come. A list at its revision
// then shows the objects of its time, however far the record was behind the writers.
func (g *groundTruth) quietMoment(t *testing.T) (m moment) {
	t.Helper()
	since := *g.oracle // of what is not counted yet
	total := 0
	eventually(t.Context(), t, "a moment at which nothing is written that is not on record", func() bool {
		var err error
		m.rev, err = g.world.plane.Etcd.Revision(t.Context())
		require.NoError(t, err)
		since.to, g.oracle.to = m.rev, m.rev
		writes, err := since.writes(t.Context())
		require.NoError(t, err)
		since.from = since.to
		total += sum(writes)
		if g.countRows(t) < total {
			return false
		}
		m.at = time.Now()
		now, err := g.world.plane.Etcd.Revision(t.Context())
		require.NoError(t, err)
		return now == m.rev
	})
	return m
}

// makeCheckpoint makes one while the recorder writes, as the recorder does.
func (w *world) makeCheckpoint(t *testing.T) {
	t.Helper()
	pool, err := postgres.NewPool(t.Context(), w.database, "test")
	require.NoError(t, err)
	defer pool.Close()
	var cluster history.Cluster
	require.NoError(t, w.db.QueryRow(t.Context(), `SELECT cluster, name, uid FROM kuberewind.clusters`).Scan(&cluster.Number, &cluster.Name, &cluster.UID))
	made, err := checkpoint.NewMaker(pool, cluster.Number, history.Of(pool, cluster).Source(), checkpoint.Options{}).MakeOne(t.Context())
	if errors.Is(err, checkpoint.ErrNothingNew) {
		return // the recorder has made it
	}
	require.NoError(t, err)
	t.Logf("a checkpoint of %d objects at seq %d", made.Objects, made.Seq)
}

// requireRebuilds: the objects rebuilt from the record are those that the server served, at any revision and time.
func (g *groundTruth) requireRebuilds(t *testing.T, moments ...moment) {
	t.Helper()
	record, err := history.Open(t.Context(), g.world.database, history.Options{})
	require.NoError(t, err)
	defer record.Close()
	streams, err := record.Streams(t.Context())
	require.NoError(t, err)

	random := rand.New(rand.NewPCG(seed, 2))
	objects := 0
	for range rebuilds {
		s := streams[random.IntN(len(streams))]
		rev := g.randomRevision(random)
		objects += g.requireEqualAt(t, record, history.AtRV(strconv.FormatInt(rev, 10)), rev, s)
	}
	for range wholeRebuilds {
		rev := g.randomRevision(random)
		objects += g.requireEqualAt(t, record, history.AtRV(strconv.FormatInt(rev, 10)), rev, streams...)
	}
	for _, m := range moments {
		objects += g.requireEqualAt(t, record, history.At(m.at), m.rev, streams...)
	}
	t.Logf("%d objects rebuilt as they were served, %d times from a checkpoint", objects, g.fromCheckpoint)
	require.NotZero(t, g.fromCheckpoint)
	g.requireSnapshots(t, random)
}

func (g *groundTruth) randomRevision(random *rand.Rand) int64 {
	return g.oracle.from + 1 + random.Int64N(g.oracle.to-g.oracle.from)
}

// requireEqualAt rebuilds streams at an instant, and compares them with the list of an API server without a cache at the
// revision. It returns the number of objects. For the whole cluster, that is also the number in etcd.
func (g *groundTruth) requireEqualAt(t *testing.T, record *history.Record, at history.Instant, rev int64, streams ...history.Stream) int {
	t.Helper()
	scope := history.Scope{}
	for _, s := range streams {
		scope.Streams = append(scope.Streams, s.ID)
	}
	point, err := record.Resolve(t.Context(), at, scope)
	require.NoError(t, err, "%s", at)
	rebuilt, stats := rebuild(t, record, point, scope)
	if stats.Checkpoint != 0 {
		g.fromCheckpoint++
	}
	total := 0
	for _, s := range streams {
		name := streamName{s.Group, s.Version, s.Resource}
		listed, err := g.oracle.list(t.Context(), name, strconv.FormatInt(rev, 10))
		require.NoError(t, err)
		require.Len(t, rebuilt[name], len(listed), "%s at %s, revision %d", name.path(), at, rev)
		for _, v := range listed {
			require.Equal(t, string(withoutHashes(t, name, v.Doc)), string(withoutHashes(t, name, rebuilt[name][v.UID])), "%s %+v at %s", name.path(), v.meta, at)
		}
		total += len(listed)
	}
	if len(streams) > 1 {
		require.Equal(t, g.objectsInEtcd(t, rev), total, "objects in etcd at revision %d", rev)
	}
	return total
}

func rebuild(t *testing.T, record *history.Record, point history.Point, scope history.Scope) (rebuilt map[streamName]map[string]patch.Doc, stats history.RebuildStats) {
	t.Helper()
	var mu sync.Mutex
	rebuilt = map[streamName]map[string]patch.Doc{}
	stats, err := record.Rebuild(t.Context(), point, scope, history.RebuildOptions{}, func(o history.Object) error {
		mu.Lock()
		defer mu.Unlock()
		name := streamName{o.Stream.Group, o.Stream.Version, o.Stream.Resource}
		if rebuilt[name] == nil {
			rebuilt[name] = map[string]patch.Doc{}
		}
		rebuilt[name][o.UID] = o.Doc
		return nil
	})
	require.NoError(t, err)
	return rebuilt, stats
}

// objectsInEtcd is how many objects etcd held at a revision.
func (g *groundTruth) objectsInEtcd(t *testing.T, rev int64) (n int) {
	t.Helper()
	keys, err := g.world.plane.Etcd.Keys(t.Context(), rev)
	require.NoError(t, err)
	for _, key := range keys {
		served := true
		for _, prefix := range notObjects {
			served = served && !strings.HasPrefix(key, prefix)
		}
		if served {
			n++
		}
	}
	return n
}

// requireSnapshots compares a namespace by plain SQL with the same lists.
func (g *groundTruth) requireSnapshots(t *testing.T, random *rand.Rand) {
	t.Helper()
	resources := []streamName{{"", "v1", "pods"}, {"", "v1", "configmaps"}, {"apps", "v1", "deployments"}, {"batch", "v1", "jobs"}}
	compared := 0
	for range snapshots {
		rev := g.randomRevision(random)
		s := resources[random.IntN(len(resources))]
		listed, err := g.oracle.list(t.Context(), s, strconv.FormatInt(rev, 10))
		require.NoError(t, err)
		byNamespace := map[string]map[string]patch.Doc{}
		for _, v := range listed {
			if byNamespace[v.Namespace] == nil {
				byNamespace[v.Namespace] = map[string]patch.Doc{}
			}
			byNamespace[v.Namespace][v.UID] = v.Doc
		}
		for namespace, objects := range byNamespace {
			require.Equal(t, objects, g.snapshotAt(t, rev, s, namespace), "%s in %s at revision %d", s.path(), namespace, rev)
			compared += len(objects)
			break
		}
	}
	t.Logf("%d objects given by snapshot_at as they were served", compared)
}

func (g *groundTruth) snapshotAt(t *testing.T, rev int64, s streamName, namespace string) map[string]patch.Doc {
	t.Helper()
	rows, err := g.world.db.Query(t.Context(), `SELECT uid, object::text FROM kuberewind.snapshot_at(NULL, $1, $2, $3, $4)`,
		"rv:"+strconv.FormatInt(rev, 10), s.group, s.resource, namespace)
	require.NoError(t, err)
	found := map[string]patch.Doc{}
	var uid, text string
	_, err = pgx.ForEachRow(rows, []any{&uid, &text}, func() (err error) {
		found[uid], err = patch.Canonical([]byte(text))
		return err
	})
	require.NoError(t, err)
	return found
}
