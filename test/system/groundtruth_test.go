package system_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/patch"
)

// writes is how many writes each of the two large tests makes. make test-more makes more.
var writes = flag.Int("writes", 6_000, "how many writes the two large tests make each")

// ends is about how often the second of them ends the recorder, however many writes there are.
const ends = 13

// seed is printed with each run, and can be set to repeat one.
var seed = uint64(time.Now().UnixNano())

// world is a control plane that is recorded.
type world struct {
	plane    *controlplane.ControlPlane
	database string
	dataDir  string
	db       *pgx.Conn
	// extra are arguments of recorders that are started from now on.
	extra []string
}

// groundTruth is what etcd and an API server hold, to compare the record of a world with.
type groundTruth struct {
	world  *world
	oracle *oracle
	// fromCheckpoint is how many rebuilds began with a checkpoint.
	fromCheckpoint int
}

var planeOptions = controlplane.Options{APIServer: controlplane.APIServerOptions{
	Audit: true, AuditUsers: []string{recorderUser},
	Args: []string{"--event-ttl=20s", "--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"},
}, Users: []controlplane.User{{Name: recorderUser, Groups: []string{"system:masters"}}}}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, controlplane.ForTest(t, planeOptions))
}

// lentWorld is newWorld for a test that may restart etcd and the API server, and restore older data. At its end, both must run
// and have the same history. The pool removes its objects.
func lentWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, pool.ForTest(t))
}

func worldOn(t *testing.T, plane *controlplane.ControlPlane) *world {
	t.Helper()
	return &world{plane: plane, database: newDatabase(t), dataDir: t.TempDir()}
}

const recorderUser = "recorder"

func (w *world) record(t *testing.T) *recordertest.Process {
	t.Helper()
	kubeconfig, err := w.plane.APIServer.Kubeconfig(recorderUser)
	require.NoError(t, err)
	args := []string{"--kubeconfig", kubeconfig, "--database", w.database, "--data-dir", w.dataDir, "--listen", "127.0.0.1:0"}
	return recordertest.Start(t, append(args, w.extra...)...)
}

// recordReady gives a recorder that follows all that there is.
func (w *world) recordReady(t *testing.T) *recordertest.Process {
	t.Helper()
	recorder := w.record(t)
	recorder.AwaitReady(t)
	return recorder
}

// recorded is a world with a recorder that follows all that there is; the arguments are for each that is started in it.
func recorded(t *testing.T, args ...string) (*world, *recordertest.Process) {
	t.Helper()
	w := newWorld(t)
	return w, w.recordedWith(t, args)
}

// recordedLent is recorded for a lentWorld.
func recordedLent(t *testing.T, args ...string) (*world, *recordertest.Process) {
	t.Helper()
	w := lentWorld(t)
	return w, w.recordedWith(t, args)
}

func (w *world) recordedWith(t *testing.T, args []string) *recordertest.Process {
	t.Helper()
	w.extra = args
	recorder := w.recordReady(t)
	w.connect(t)
	return recorder
}

func (w *world) connect(t *testing.T) {
	t.Helper()
	var err error
	w.db, err = pgx.Connect(t.Context(), w.database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.db.Close(context.WithoutCancel(t.Context())) })
}

func (w *world) workload(t *testing.T, writes int) *workload {
	t.Helper()
	t.Logf("workload of %d writes, seed %d", writes, seed)
	load, err := newWorkload(w.plane.Config(), seed, 8, writes)
	require.NoError(t, err)
	return load
}

func TestEveryRevisionIsRecordedExactlyOnceAndFoldsToWhatWasServed(t *testing.T) {
	t.Parallel()
	w, recorder := recorded(t)
	truth := newGroundTruth(t, w)
	before := truth.quietMoment(t)
	started := time.Now()
	load := w.workload(t, *writes)
	var g errgroup.Group
	g.Go(func() error { return load.run(t.Context()) })
	<-load.half
	w.makeCheckpoint(t)
	require.NoError(t, g.Wait())
	t.Logf("%d writes in %s", *writes, time.Since(started).Round(time.Millisecond))
	w.awaitExpiry(t)
	after := truth.quietMoment(t)
	truth.compare(t)
	truth.requireRebuilds(t, before, after)
	recorder.Terminate(t)
}

func TestARecorderThatIsStoppedAndKilledMissesNothingAndListsNothingAgain(t *testing.T) {
	t.Parallel()
	w, recorder := recorded(t)
	truth := newGroundTruth(t, w)
	before := len(w.lists(t))

	load := w.workload(t, *writes)
	random := rand.New(rand.NewPCG(seed, 1))
	var g errgroup.Group
	g.Go(func() error { return load.run(t.Context()) })
	starts := 1
	all := int64(*writes)
	for load.done.Load() < all {
		// The next end comes at random progress of the workload, seen, not timed.
		target := load.done.Load() + all/(3*ends) + random.Int64N(4*all/(3*ends))
		eventually(t.Context(), t, "progress of the workload", func() bool { return load.done.Load() >= min(target, all) })
		if random.IntN(3) == 0 {
			recorder.AwaitReady(t)
			recorder.Terminate(t)
		} else {
			recorder.Kill(t)
		}
		recorder = w.record(t)
		starts++
	}
	require.NoError(t, g.Wait())
	t.Logf("the recorder was started %d times", starts)
	w.awaitExpiry(t)
	truth.compare(t)
	w.requireNoRelist(t, before)
	recorder.Terminate(t)
}

// awaitExpiry returns when several Events have ended at one revision: etcd deletes all that share a lease at once.
func (w *world) awaitExpiry(t *testing.T) {
	t.Helper()
	w.awaitLines(t, []string{"shared"}, `SELECT 'shared' FROM kuberewind.deltas WHERE resource = 'events' AND type = 'Deleted'
		GROUP BY resource_version HAVING count(*) > 1 LIMIT 1`)
}

// newGroundTruth expects everything that is written from now on: what the oracle's API server writes as it starts, too.
func newGroundTruth(t *testing.T, w *world) *groundTruth {
	t.Helper()
	from, err := w.plane.Etcd.Revision(t.Context())
	require.NoError(t, err)
	g := &groundTruth{world: w, oracle: newOracle(t, w.plane)}
	g.oracle.from = from
	return g
}

// compare waits until the record has come to etcd's present revision, and compares all of it.
func (g *groundTruth) compare(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var err error
	g.oracle.to, err = g.world.plane.Etcd.Revision(ctx)
	require.NoError(t, err)
	expected, err := g.oracle.writes(ctx)
	require.NoError(t, err)
	total := 0
	for _, n := range expected {
		total += n
	}
	waited := time.Now()
	// However much there is to catch up on, it has to go on.
	for n := -1; n < total; {
		before := n
		eventually(ctx, t, fmt.Sprintf("more than %d of the %d rows between revisions %d and %d", before, total, g.oracle.from, g.oracle.to), func() bool {
			n = g.countRows(t)
			return n > before
		})
	}
	t.Logf("the record was complete %s after the last write", time.Since(waited).Round(time.Millisecond))
	record := readRecord(ctx, t, g.world.db)
	g.compareWrites(t, record, expected)
	g.compareServed(t, record, total)
	g.compareFirstLists(t, record)
	g.requireNoGap(t)
	g.requireNoSecret(t)
}

func (g *groundTruth) countRows(t *testing.T) (n int) {
	t.Helper()
	err := g.world.db.QueryRow(t.Context(), `SELECT count(*) FROM kuberewind.deltas WHERE resource_version::numeric BETWEEN $1 AND $2 AND source = 'watch'`,
		g.oracle.from+1, g.oracle.to).Scan(&n)
	require.NoError(t, err)
	return n
}

// expectedNow says whether the oracle knows a row.
func (g *groundTruth) expectedNow(x *row) bool {
	rev, err := strconv.ParseInt(x.meta.ResourceVersion, 10, 64)
	return err == nil && rev > g.oracle.from && rev <= g.oracle.to
}

// compareWrites: every write of etcd is one row, of its type, and nothing else is.
func (g *groundTruth) compareWrites(t *testing.T, record []row, expected map[write]int) {
	t.Helper()
	found := map[write]int{}
	for i := range record {
		x := &record[i]
		if !g.expectedNow(x) {
			continue
		}
		require.Equal(t, "watch", x.source, "seq %d of %s %+v", x.seq, x.stream.resource, x.meta)
		rev, _ := strconv.ParseInt(x.meta.ResourceVersion, 10, 64)
		found[write{rev, x.typ}]++
	}
	for key, n := range expected {
		require.Equal(t, n, found[key], "%s at revision %d", key.kind, key.rev)
	}
	require.Len(t, found, len(expected))
	t.Logf("%d writes of etcd, %d of them sharing a revision, are on record once each", sum(expected), sum(expected)-len(expected))
}

func sum(counts map[write]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// compareServed: each row folds to what the server served at its revision.
func (g *groundTruth) compareServed(t *testing.T, record []row, written int) {
	t.Helper()
	rows := map[streamName][]*row{}
	var streams []streamName
	for i := range record {
		x := &record[i]
		if _, known := rows[x.stream]; !known {
			streams = append(streams, x.stream)
		}
		if g.expectedNow(x) {
			rows[x.stream] = append(rows[x.stream], x)
		} else if _, known := rows[x.stream]; !known {
			rows[x.stream] = nil
		}
	}
	served, err := g.oracle.served(t.Context(), streams, written)
	require.NoError(t, err)
	compared := 0
	for _, s := range streams {
		require.Len(t, rows[s], len(served[s]), "versions of %s", s.path())
		for i, v := range served[s] {
			compareVersion(t, s, rows[s], i, v)
			compared++
		}
	}
	t.Logf("%d versions of %d resources fold to what was served", compared, len(streams))
}

// compareVersion: the rows of a stream stand in the order served; versions of one revision may change places.
func compareVersion(t *testing.T, s streamName, rows []*row, i int, v version) {
	t.Helper()
	x := rows[i]
	for j := i + 1; x.meta.UID != v.UID && j < len(rows) && rows[j].meta.ResourceVersion == v.ResourceVersion; j++ {
		rows[i], rows[j] = rows[j], rows[i]
		x = rows[i]
	}
	require.Equal(t, v.meta, x.meta, "seq %d of %s", x.seq, s.path())
	require.Equal(t, v.Type, x.typ, "seq %d of %s %+v", x.seq, s.path(), v.meta)
	require.Equal(t, string(withoutHashes(t, s, v.Doc)), string(withoutHashes(t, s, x.doc)), "seq %d of %s", x.seq, s.path())
}

// withoutHashes hides what the record has as hashes: the values of Secrets, and of their annotations.
func withoutHashes(t *testing.T, s streamName, doc patch.Doc) patch.Doc {
	t.Helper()
	if s.resource != "secrets" {
		return doc
	}
	data, err := patch.ParsePath("/data/*")
	require.NoError(t, err)
	annotations, err := patch.ParsePath("/metadata/annotations/*")
	require.NoError(t, err)
	hidden, err := patch.Rewrite(doc, []patch.Path{data, annotations}, func(string, patch.Doc) (patch.Doc, error) { return patch.Doc(`"hidden"`), nil })
	require.NoError(t, err)
	return hidden
}

// compareFirstLists: objects from before the record are on record as they were at the first list.
func (g *groundTruth) compareFirstLists(t *testing.T, record []row) {
	t.Helper()
	found := map[streamName]map[string]patch.Doc{}
	for i := range record {
		if x := &record[i]; x.source == "list" {
			if found[x.stream] == nil {
				found[x.stream] = map[string]patch.Doc{}
			}
			found[x.stream][x.meta.UID] = x.doc
		}
	}
	for s, rvs := range g.firstLists(t) {
		listed, err := g.oracle.list(t.Context(), s, rvs)
		require.NoError(t, err)
		require.Len(t, found[s], len(listed), "first list of %s", s.path())
		for _, v := range listed {
			require.Equal(t, string(withoutHashes(t, s, v.Doc)), string(withoutHashes(t, s, found[s][v.UID])), "%s %+v", s.path(), v.meta)
		}
	}
}

func (g *groundTruth) firstLists(t *testing.T) map[streamName]string {
	t.Helper()
	rows, err := g.world.db.Query(t.Context(), `
		SELECT g.api_group, s.version, g.resource, g.to_rv FROM kuberewind.gaps g JOIN kuberewind.streams s USING (api_group, resource)
		WHERE g.cause = 'first_list'`)
	require.NoError(t, err)
	lists := map[streamName]string{}
	var s streamName
	var rv string
	_, err = pgx.ForEachRow(rows, []any{&s.group, &s.version, &s.resource, &rv}, func() error {
		lists[s] = rv
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	return lists
}

// requireNoGap: there are no gaps but those of the first lists. The CRD that was made in mid-run has not even that.
func (g *groundTruth) requireNoGap(t *testing.T) {
	t.Helper()
	rows, err := g.world.db.Query(t.Context(), `SELECT resource || ': ' || cause || ' ' || detail FROM kuberewind.gaps
		WHERE (cause <> 'first_list' OR api_group = $1) AND NOT (cause = 'unreachable' AND outcome = 'resumed')`, widgets.Group)
	require.NoError(t, err)
	gaps, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, gaps)
}

// requireNoSecret: I9. The value of the workload's Secrets is nowhere in the record, plain or in base64.
func (g *groundTruth) requireNoSecret(t *testing.T) {
	t.Helper()
	var n int
	err := g.world.db.QueryRow(t.Context(), `SELECT count(*) FROM kuberewind.deltas
		WHERE concat(patch::text, object::text, encode(exact, 'escape')) LIKE ANY ($1)`,
		[]string{"%" + secretValue + "%", "%Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ%"}).Scan(&n)
	require.NoError(t, err)
	require.Zero(t, n)
}

// lists are the lists that the recorder has asked for. One of one object is a probe: is a new resource served yet? One at an exact
// version reads the history of a new resource.
func (w *world) lists(t *testing.T) []controlplane.Request {
	t.Helper()
	requests, err := w.plane.APIServer.Requests()
	require.NoError(t, err)
	var lists []controlplane.Request
	for _, r := range requests {
		probe := strings.Contains(r.URI+"&", "limit=1&")
		exact := strings.Contains(r.URI, "resourceVersionMatch=Exact")
		if r.User == recorderUser && r.Verb == "list" && r.Resource != "" && !probe && !exact {
			lists = append(lists, r)
		}
	}
	return lists
}

func (w *world) requireNoRelist(t *testing.T, before int) {
	t.Helper()
	for _, r := range w.lists(t)[before:] {
		// To learn what there is to record, these two are read at each start; not into the record.
		if r.Resource == "customresourcedefinitions" || r.Resource == "apiservices" {
			continue
		}
		t.Fatalf("a list after the first start: %s", r.URI)
	}
	for _, r := range w.relistsOnRecord(t) {
		t.Fatalf("a relist on record: %s", r)
	}
}

func (w *world) relistsOnRecord(t *testing.T) []string {
	t.Helper()
	rows, err := w.db.Query(t.Context(), `SELECT DISTINCT resource FROM kuberewind.deltas WHERE source NOT IN ('watch', 'list')`)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

func (m meta) String() string {
	return strings.Join([]string{m.Namespace, m.Name, m.UID, m.ResourceVersion}, " ")
}
