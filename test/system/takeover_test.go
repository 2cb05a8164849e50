package system_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// slowTakeover is what the documentation promises for the default --lease-duration. make load holds all takeovers to it, alone on a machine.
const slowTakeover = 15 * time.Second

// short is a term that costs the test less. make load has the default.
const short = "3s"

// TestAStandbyTakesOver: from a leader that was killed, and from one that was stopped with a transaction open, under load.
// Nothing is missing, double or listed again. The stopped leader's open transaction is not on record (I1, I3, I7).
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	w := lentWorld(t)
	term := []string{"--lease-duration", short}
	if *load {
		term = nil
	}
	byLease := append(slices.Clone(term), "--leader-elect", "lease", "--lease-namespace", "default", "--event-namespace", "default")
	for _, kind := range []struct {
		name string
		args [3][]string // of the three recorders
	}{
		// A standby waits for the term of the leader: the second takeover is by the default.
		{"by the database", [3][]string{term, nil, nil}},
		{"by a Lease", [3][]string{byLease, byLease, byLease}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			w := &world{plane: w.plane, database: newDatabase(t), dataDir: t.TempDir()}
			w.takeOverTwice(t, kind.args)
			if kind.name == "by a Lease" {
				require.Equal(t, []string{"Normal LeaderElected", "Normal LeaderElected", "Normal LeaderElected", "Normal Standby", "Normal Standby"}, w.lines(t, ownEvents))
			}
		})
	}
}

func (w *world) takeOverTwice(t *testing.T, args [3][]string) {
	first := w.candidate(t, args[0])
	first.AwaitReady(t)
	w.connect(t)
	second := w.candidate(t, args[1])
	second.Await(t, "standby: another recorder records this cluster")
	require.Equal(t, "standby\n", second.Get("/readyz"))
	require.Equal(t, "ok\n", first.Get("/readyz"))

	truth := newGroundTruth(t, w)
	load := w.churn(t, 60)
	w.awaitCommits(t, 1, 20)
	before := len(w.lists(t))
	killed := time.Now()
	first.Kill(t)
	w.reportTakeover(t, 2, "SIGKILL", killed, args[0])
	second.AwaitReady(t)

	third := w.candidate(t, args[2])
	third.Await(t, "standby: another recorder records this cluster")
	w.awaitCommits(t, 2, 20)
	stopped := w.stopInTransaction(t, second)
	w.reportTakeover(t, 3, "SIGSTOP in a transaction", stopped, args[1])
	third.AwaitReady(t)
	require.NoError(t, second.Signal(syscall.SIGCONT))
	require.Equal(t, 4, second.AwaitEnd(t), second.Log())

	w.awaitCommits(t, 3, 20)
	load.stop()
	truth.compare(t)
	w.requireNoRelist(t, before)
	third.Terminate(t)
}

// candidate starts a recorder of its own host: it shares the database and the redaction key with the others, and nothing else.
func (w *world) candidate(t *testing.T, args []string) *recordertest.Process {
	t.Helper()
	kubeconfig, err := w.plane.APIServer.Kubeconfig(recorderUser)
	require.NoError(t, err)
	return recordertest.Start(t, append([]string{
		"--kubeconfig", kubeconfig, "--database", w.database, "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0",
		"--redaction-key-file", filepath.Join(w.dataDir, "redaction.key"),
	}, args...)...)
}

// awaitCommits waits until a writer has committed so many times.
func (w *world) awaitCommits(t *testing.T, epoch, n int) {
	t.Helper()
	eventually(t.Context(), t, "commits", func() bool {
		var commits int
		require.NoError(t, w.db.QueryRow(t.Context(), `SELECT count(*) FROM kuberewind.batches WHERE epoch = $1`, epoch).Scan(&commits))
		return commits >= n
	})
}

// reportTakeover waits for the first commit of a writer.
func (w *world) reportTakeover(t *testing.T, epoch int, from string, since time.Time, args []string) {
	t.Helper()
	w.awaitCommits(t, epoch, 1)
	var committed time.Time
	require.NoError(t, w.db.QueryRow(t.Context(), `SELECT min(committed_at) FROM kuberewind.batches WHERE epoch = $1`, epoch).Scan(&committed))
	took := committed.Sub(since)
	t.Logf("takeover: %s from %s of the leader to the standby's first commit, with %v", took.Round(10*time.Millisecond), from, args)
	if *load {
		require.Less(t, took, slowTakeover)
	}
}

// stopInTransaction stops the process while its COPY waits for a lock, and then releases the lock. The transaction has moved
// the head, its rows are written or on their way, and no session ends it.
func (w *world) stopInTransaction(t *testing.T, p *recordertest.Process) time.Time {
	t.Helper()
	tx, err := w.db.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE kuberewind.deltas_data IN EXCLUSIVE MODE`)
	require.NoError(t, err)
	eventually(t.Context(), t, "a COPY that waits for the lock", func() bool {
		var waits bool
		require.NoError(t, tx.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks
			WHERE relation = 'kuberewind.deltas_data'::regclass AND mode = 'RowExclusiveLock' AND NOT granted)`).Scan(&waits))
		return waits
	})
	stopped := time.Now()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.NoError(t, tx.Rollback(t.Context()))
	return stopped
}
