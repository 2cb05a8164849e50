package chaos_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	plane      *controlplane.ControlPlane
	server     *pgtest.Server
	database   *pgtest.Database
	api, sql   *wire
	client     dynamic.Interface
	load       *load
	oracle     *oracle
	recorder   *keeper
	random     *rand.Rand
	kubeconfig string
	address    string // URL of the database, with the login of the recorder, over the wire
	key        string // file of the redaction key, which all recorders share
	dir        string
	other      *keeper // keeper of the second recorder, while there are two
	recorders  int
	retired    []*keeper
	edition    int    // edition of the definition of widgets
	slow       string // file that makes the database's disk slow
	peak       peak
	restarts   int // restarts of the API server because its caches were not trusted

	mu    sync.Mutex // protects exits
	exits map[int]int
}

// recorderUser may read everything while a binding exists.
const recorderUser = "recorder"

func newWorld(t *testing.T, random *rand.Rand, selected []fault) *world {
	t.Helper()
	w := &world{random: random, dir: t.TempDir(), exits: map[int]int{}}
	w.key = filepath.Join(w.dir, "redaction.key")
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
	w.writeKubeconfig(t)
	w.openDatabase(t, selected)
	w.recorder = w.newRecorder(t)
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

// writeKubeconfig writes the kubeconfig of the control plane, with the address of the wire.
func (w *world) writeKubeconfig(t *testing.T) {
	t.Helper()
	path, err := w.plane.APIServer.Kubeconfig(recorderUser)
	require.NoError(t, err)
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + w.api.address
	}
	w.kubeconfig = filepath.Join(w.dir, "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, w.kubeconfig))
}

// openDatabase starts a PostgreSQL for this test alone. It is on a small disk if a fault fills the disk.
func (w *world) openDatabase(t *testing.T, selected []fault) {
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
	w.address = u.String()
}

// diskBytes is far more than a campaign writes. A fault fills the rest.
const diskBytes = 8 << 30

// newRecorder returns a recorder with its own folder, and with a small queue.
func (w *world) newRecorder(t *testing.T) *keeper {
	t.Helper()
	w.recorders++
	name := fmt.Sprint("recorder-", w.recorders)
	return newKeeper(t, w.ended, "--kubeconfig", w.kubeconfig, "--database", w.address, "--data-dir", filepath.Join(w.dir, name),
		"--redaction-key-file", w.key, "--cluster-name", "chaos", "--listen", "127.0.0.1:0", "--queue-size", "1Mi")
}

func (w *world) ended(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exits[code]++
}

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
	metrics := w.recorder.current().Metrics()
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

// second starts another recorder of the same cluster and record.
func (w *world) second(t *testing.T) {
	t.Helper()
	w.other = w.newRecorder(t)
	w.other.start(t)
}

// stopOne stops one of the two.
func (w *world) stopOne() {
	if w.random.IntN(2) == 0 {
		w.recorder, w.other = w.other, w.recorder
	}
	w.other.end()
	w.retired = append(w.retired, w.other)
	w.other = nil
}

// log returns the logs of all recorders.
func (w *world) log() string {
	var text strings.Builder
	for _, k := range append(w.retired, w.recorder) {
		text.WriteString(k.log())
	}
	return text.String()
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
		metrics := w.recorder.current().Metrics()
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
	w.recorder.start(t)
	w.recorder.current().AwaitReady(t)
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
