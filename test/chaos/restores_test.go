package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// restored puts etcd back to an older state and restarts both servers. The recorder has to detect the rollback.
func restored(t *testing.T, w *world, during func()) {
	defer w.restore(t, during)()
	require.NoError(t, w.plane.APIServer.Kill())
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
}

// restoredBehind does not restart the API server, which then serves its stale watch caches. The recorder has to detect the rollback.
func restoredBehind(t *testing.T, w *world, during func()) {
	defer w.restore(t, during)()
	require.NoError(t, w.plane.APIServer.Continue())
	recordertest.Eventually(t.Context(), t, "the recorder to see that history went backwards", func() bool {
		return w.rollbackGapIsOpen(t.Context())
	})
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
}

// overtaken is like restoredBehind while the load goes on: the new history passes the old one before the recorder probes.
func overtaken(t *testing.T, w *world, during func()) {
	resume := w.restore(t, during)
	err := w.plane.APIServer.Continue()
	resume()
	require.NoError(t, err)
	w.hold(t, w.between(5, 10))
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
}

// overtakenAndKilled is like overtaken, but no recorder runs while the new history passes the old one. As a rule, only the record shows
// that the API server has served lost writes. One of them is a delete. The new history has the deleted object, and the old cache never
// gets it.
func overtakenAndKilled(t *testing.T, w *world, during func()) {
	name := fmt.Sprintf("undeleted-%x", w.random.Uint64())
	w.mustCreate(t, clusterRoles, newObject("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, nil))
	end := func(context.Context) error {
		w.recorders.first.end()
		return nil
	}
	resume := w.restoreTo(t, func() {
		during()
		require.NoError(t, w.client.Resource(clusterRoles).Delete(t.Context(), name, noGrace()))
		w.awaitDelete(t, name)
	}, end)
	err := w.plane.APIServer.Continue()
	resume()
	require.NoError(t, err)
	w.hold(t, w.between(5, 10))
	w.recorders.first.start(t)
	w.recorders.first.current().Await(t, "restart the API server")
	w.hold(t, w.between(2, 5))
	_, err = w.client.Resource(clusterRoles).Get(t.Context(), name, metav1.GetOptions{ResourceVersion: "0"})
	require.True(t, apierrors.IsNotFound(err), "the cache has the new history, so this shows nothing: %v", err)
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
}

// restoredAndKilled kills the recorder while etcd is put back. The next recorder finds another history than the one on record.
func restoredAndKilled(t *testing.T, w *world, during func()) {
	defer w.restore(t, during)()
	w.recorders.first.signal(syscall.SIGKILL)
	require.NoError(t, w.plane.APIServer.Kill())
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
}

// restoredUnrecorded kills the recorder between the proof and the commit. The next recorder has to find the rollback again.
func restoredUnrecorded(t *testing.T, w *world, during func()) {
	said := len(w.recorders.first.current().Log())
	resume := w.restore(t, during)
	w.sql.refuse()
	require.NoError(t, w.plane.APIServer.Kill())
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
	resume()
	victim := w.recorders.first.current()
	recordertest.Eventually(t.Context(), t, "the proof that history went backwards", func() bool {
		return strings.Contains(victim.Log()[said:], "history went backwards") || w.recorders.first.current() != victim
	})
	w.recorders.first.signal(syscall.SIGKILL)
	require.NoError(t, w.sql.mend())
	w.hold(t, seconds(1))
}

// restoredUnseen stops the recorder until the new history has passed the old one and the API server was restarted. In half of the
// rounds the recorder stops before the first lost write. Then it may never be served one: if it sends a request over the dead
// connection before it has read what that connection holds, net/http discards the rest. In the other half, a lost write is on record.
func restoredUnseen(t *testing.T, w *world, during func()) {
	stop := func() { w.recorders.first.signal(syscall.SIGSTOP) }
	early := w.random.IntN(2) == 0
	if early {
		stop()
	}
	resume := w.restore(t, func() {
		if !early {
			w.awaitNewRow(t)
			stop()
		}
		w.hold(t, w.between(1, 3))
		during()
	})
	require.NoError(t, w.plane.APIServer.Kill())
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
	resume()
	w.hold(t, w.between(5, 10))
	w.recorders.first.signal(syscall.SIGCONT)
	w.hold(t, seconds(1))
}

// awaitNewRow waits until a write after the call is on record.
func (w *world) awaitNewRow(t *testing.T) {
	t.Helper()
	now, err := w.plane.Etcd.Revision(t.Context())
	require.NoError(t, err)
	var last int64
	require.NoError(t, w.query(t.Context(), func(ctx context.Context, db pgx.Tx) error {
		return db.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM kuberewind.deltas`).Scan(&last)
	}))
	recordertest.Eventually(t.Context(), t, "a new write on record", func() bool {
		return w.query(t.Context(), func(ctx context.Context, db pgx.Tx) error {
			var seq int64
			return db.QueryRow(ctx, `SELECT seq FROM kuberewind.deltas WHERE seq > $1 AND source = 'watch' AND resource_version::bigint > $2 LIMIT 1`,
				last, now).Scan(&seq)
		}) == nil
	})
}

// awaitDelete waits until the delete of an object is on record.
func (w *world) awaitDelete(t *testing.T, name string) {
	t.Helper()
	recordertest.Eventually(t.Context(), t, "the delete of "+name+" on record", func() bool {
		return w.query(t.Context(), func(ctx context.Context, db pgx.Tx) error {
			var seq int64
			return db.QueryRow(ctx, `SELECT seq FROM kuberewind.deltas WHERE name = $1 AND type = 'Deleted'`, name).Scan(&seq)
		}) == nil
	})
}

func (w *world) rollbackGapIsOpen(ctx context.Context) bool {
	return w.query(ctx, func(ctx context.Context, db pgx.Tx) error {
		var gap int64
		return db.QueryRow(ctx, `SELECT gap FROM kuberewind.gaps WHERE cause = 'history_reversed' AND open LIMIT 1`).Scan(&gap)
	}) == nil
}

// restoredForOne runs two API servers behind one address. One is restarted with etcd; the other keeps its stale caches.
func restoredForOne(t *testing.T, w *world, during func()) {
	other, err := w.plane.StartAPIServer(t.Context(), controlplane.APIServerOptions{Args: serverArguments()})
	require.NoError(t, err)
	w.api.share(hostOf(t, other.URL()))
	w.api.reset()
	w.hold(t, w.between(1, 3))
	resume := w.restore(t, during, other)
	require.NoError(t, other.Continue())
	require.NoError(t, w.plane.APIServer.Kill())
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
	resume()
	w.hold(t, w.between(5, 10))
	w.api.share("")
	require.NoError(t, other.Stop(t.Context()))
}

// restoredBumped follows etcd's manual: new revisions begin beyond all served ones, and all earlier ones are compacted. So both
// histories share no revision, and the recorder cannot verify the caches of quiet resources. Another restart of the API server,
// after the recorder has probed all streams, solves that.
func restoredBumped(t *testing.T, w *world, during func()) {
	resume := w.restoreTo(t, during, w.bump)
	require.NoError(t, w.plane.APIServer.Kill())
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
	resume()
	w.hold(t, seconds(60))
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
}

// bumped is the number of skipped revisions: more than a round writes.
const bumped = 10_000

func (w *world) bump(ctx context.Context) error {
	err := w.plane.Etcd.Put(ctx, func(yield func(string, []byte) bool) {
		for i := range bumped {
			if !yield(fmt.Sprint("/bumped/", i%100), nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	now, err := w.plane.Etcd.Revision(ctx)
	if err != nil {
		return err
	}
	return w.plane.Etcd.Compact(ctx, now)
}

// restore puts etcd back to its state before the other faults. The writers and the API servers are stopped before it, until the
// returned function is called. So the oracle reads all of the lost history.
func (w *world) restore(t *testing.T, during func(), others ...*controlplane.APIServer) (resume func()) {
	t.Helper()
	return w.restoreTo(t, during, func(context.Context) error { return nil }, others...)
}

// restoreTo is like restore, but changes the state that etcd gets.
func (w *world) restoreTo(t *testing.T, during func(), change func(context.Context) error, others ...*controlplane.APIServer) (resume func()) {
	t.Helper()
	saved, err := w.plane.Etcd.SaveData()
	require.NoError(t, err)
	w.hold(t, w.between(1, 3))
	during()
	resume = w.load.pause()
	for _, server := range append(others, w.plane.APIServer) {
		require.NoError(t, server.Pause())
	}
	require.NoError(t, w.oracle.goBack(t.Context(), func() error {
		if err := w.plane.Etcd.RestoreData(t.Context(), saved); err != nil {
			return err
		}
		return change(t.Context())
	}))
	return resume
}
