package chaos_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/migrations"
)

// patience is the time that the recorder may take to recover. It retries forbidden resources, and detects half-open
// connections, within a minute each.
var patience = flag.Duration("patience", recordertest.Patience, "how long the recorder may take to be over a fault")

// world is a cluster, its record, and the recorder between them, each reached through a wire.
type world struct {
	plane     *controlplane.ControlPlane
	server    *pgtest.Server
	database  *pgtest.Database
	api, sql  *wire
	client    dynamic.Interface
	load      *load
	oracle    *oracle
	recorders *recorders
	random    *rand.Rand
	edition   int    // edition of the definition of widgets
	slow      string // file that makes the database's disk slow
	peak      peak
	restarts  int // restarts of the API server because its caches were not trusted
}

// recorderUser may read everything while a binding exists.
const recorderUser = "recorder"

func newWorld(t *testing.T, random *rand.Rand, selected []fault) *world {
	t.Helper()
	w := &world{random: random}
	w.plane = controlplane.ForTest(t, controlplane.Options{
		APIServer: controlplane.APIServerOptions{Args: serverArguments()}, Users: []controlplane.User{{Name: recorderUser}},
	})
	config := w.plane.Config()
	config.WarningHandler = rest.NoWarnings{}
	var err error
	w.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	w.allowReading(t)
	w.makeWidgets(t, 0)
	w.api = newWire(t, "tcp", hostOf(t, w.plane.APIServer.URL()))
	dir := t.TempDir()
	kubeconfig := w.writeKubeconfig(t, dir)
	w.recorders = newRecorders(t, dir, kubeconfig, w.openDatabase(t, selected))
	w.load = newLoad(w.client, *seed)
	return w
}

// serverArguments let the test compare stored objects with recorded ones, let Events expire within a run, and do not limit the load.
func serverArguments() []string {
	return []string{
		"--storage-media-type=application/json", "--event-ttl=40s", "--etcd-compaction-interval=" + compacted.String(),
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// writeKubeconfig writes the kubeconfig of the control plane, with the address of the wire, and returns its path.
func (w *world) writeKubeconfig(t *testing.T, dir string) string {
	t.Helper()
	path, err := w.plane.APIServer.Kubeconfig(recorderUser)
	require.NoError(t, err)
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + w.api.address
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	return kubeconfig
}

// openDatabase starts a PostgreSQL for this test alone. It is on a small disk if a fault fills the disk. The
// returned URL of the database has the login of the recorder, and leads over the wire.
func (w *world) openDatabase(t *testing.T, selected []fault) string {
	t.Helper()
	selects := func(kind string) bool {
		return slices.ContainsFunc(selected, func(f fault) bool { return f.kind == kind })
	}
	if selects("postgres-slow") {
		w.slow = slowDisk(t)
	}
	if selects("postgres-full") {
		w.server = pgtest.StartServerOnDisk(t, diskBytes)
	} else {
		w.server = pgtest.StartServer(t)
	}
	w.database = w.server.New(t, pgtest.EmptyRecord)
	login := w.database.Login(t, migrations.WriterRole)
	config, err := pgx.ParseConfig(login)
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	w.sql = newWire(t, network, address)
	u := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: w.sql.address, Path: "/" + config.Database,
		RawQuery: "sslmode=disable"}
	return u.String()
}

// diskBytes is far more than a campaign writes. A fault fills the rest.
const diskBytes = 8 << 30

// query reads the record at one instant, as its owner and not over the wire. It fails while the server is down.
func (w *world) query(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	db, err := pgx.Connect(ctx, w.database.URL())
	if err != nil {
		return err
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error { return do(ctx, tx) })
	return errors.Join(err, db.Close(context.WithoutCancel(ctx)))
}

// hold waits until the load has tried a number of further writes, which is how this test measures time. If a server hangs, it
// stops waiting much later. It watches the memory of the recorder meanwhile.
func (w *world) hold(t *testing.T, writes int64) {
	t.Helper()
	target := w.load.tried.Load() + writes
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Duration(writes)*time.Second/time.Duration(*rate))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for w.load.tried.Load() < target {
		w.look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookEvery is the interval at which the metrics of the recorder are read.
const lookEvery = time.Second

// peak holds the largest values of the metrics of the recorder.
type peak struct {
	at                   time.Time // the last reading
	memory, queue, spool float64   // bytes
}

func (w *world) look() {
	if time.Since(w.peak.at) < lookEvery {
		return
	}
	w.peak.at = time.Now()
	metrics := w.recorders.first.current().Metrics()
	for name, most := range map[string]*float64{
		"process_resident_memory_bytes": &w.peak.memory, "kuberewind_queue_bytes": &w.peak.queue, "kuberewind_spool_bytes": &w.peak.spool,
	} {
		*most = max(*most, metrics[name])
	}
}

// seconds returns the number of writes that the load tries in a number of seconds.
func seconds(n float64) int64 { return int64(n * float64(*rate)) }

// between draws how many seconds a fault lasts.
func (w *world) between(least, most float64) int64 {
	return seconds(least + w.random.Float64()*(most-least))
}

// allowReading binds the recorder to a role that reads everything.
func (w *world) allowReading(t *testing.T) {
	t.Helper()
	role := newObject("rbac.authorization.k8s.io/v1", "ClusterRole", "", reader, map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"get", "list", "watch"}},
		map[string]any{"nonResourceURLs": []any{"*"}, "verbs": []any{"get"}},
	}})
	w.mustCreate(t, clusterRoles, role)
	w.bindReader(t)
}

const reader = "kuberewind-reader"

func (w *world) bindReader(t *testing.T) {
	t.Helper()
	w.mustCreate(t, clusterRoleBindings, newObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", reader, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": reader},
		"subjects": []any{map[string]any{"kind": "User", "name": recorderUser, "apiGroup": "rbac.authorization.k8s.io"}},
	}))
}

// usage holds the resources of an idle recorder.
type usage struct{ memory, goroutines, files float64 }

// idleWait is the time that a recorder with a complete record may take to follow all streams, before the next round begins.
const idleWait = 15 * time.Second

// usage waits until all streams are followed, and returns how many are not.
func (w *world) usage(t *testing.T) (u usage, behind int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), idleWait)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		metrics := w.recorders.first.current().Metrics()
		u = usage{metrics["process_resident_memory_bytes"], metrics["go_goroutines"], metrics["process_open_fds"]}
		behind = 0
		for name, up := range metrics {
			if strings.HasPrefix(name, "kuberewind_stream_up{") && up == 0 {
				behind++
			}
		}
		if metrics == nil {
			behind = 1 // at least: a recorder that does not answer may hold more
		}
		if behind == 0 {
			return u, 0
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return u, behind
		}
	}
}

// begin starts the recorder, and waits until it has to record all further writes.
func (w *world) begin(t *testing.T) *ledger {
	t.Helper()
	w.recorders.first.start(t)
	w.recorders.first.current().AwaitReady(t)
	w.oracle = newOracle(t, w.plane.Etcd)
	l := newLedger(w.oracle, w.api)
	recordertest.Eventually(t.Context(), t, "the first lists", func() bool {
		return w.query(t.Context(), func(ctx context.Context, db pgx.Tx) error {
			var open bool
			err := db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE open) > 0 FROM kuberewind.gaps`).Scan(&open)
			if err == nil && open {
				err = errors.New("there are open gaps")
			}
			return err
		}) == nil
	})
	return l
}

// noGrace deletes an object immediately.
func noGrace() metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: new(int64)} }

// restartRequests returns a function that reports whether the first recorder's log has asked to restart the API server since the call of
// restartRequests, or since that recorder's successor began.
func (w *world) restartRequests() (asked func() bool) {
	began := w.recorders.first.current()
	said := len(began.Log())
	return func() bool {
		now := w.recorders.first.current()
		log := now.Log()
		if now == began {
			log = log[said:]
		}
		return strings.Contains(log, "restart the API server")
	}
}
