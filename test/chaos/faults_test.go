package chaos_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A fault is one kind of failure. It begins, lasts while other faults may begin and end, and is over when do returns.
type fault struct {
	kind string
	// part is the component that it breaks. Two faults of one part never run together.
	part string
	// alone is set if it waits for the reaction of the recorder. No other fault runs with it.
	alone bool
	// quick is set if the recorder recovers in seconds.
	quick bool
	// refused returns why it cannot be injected on this machine, or "". It is nil if it always can.
	refused func() string
	do      func(t *testing.T, w *world, during func())
}

// faults are in the order of nesting. A fault that needs a working API server comes before one that stops it.
var faults = []fault{
	{kind: "crd-recreated", part: "definition", quick: true, do: recreateDefinition},
	{kind: "rbac-withdrawn", part: "rights", do: withdrawRights},
	{kind: "two-recorders", part: "recorder", quick: true, do: secondRecorder},
	{kind: "two-recorders-paused", part: "recorder", quick: true, do: secondRecorderWhilePaused},
	{kind: "recorder-killed", part: "recorder", quick: true, do: signalled(syscall.SIGKILL)},
	{kind: "recorder-killed-often", part: "recorder", do: killedOften},
	{kind: "recorder-terminated", part: "recorder", do: signalled(syscall.SIGTERM)},
	{kind: "recorder-paused", part: "recorder", quick: true, do: paused},
	{kind: "compacted-beyond", part: "recorder", do: compactedBeyond},
	{kind: "spool-and-kill", part: "database", quick: true, do: spoolAndKill},
	{kind: "postgres-killed", part: "database", quick: true, do: postgresKilled},
	{kind: "postgres-away", part: "database", do: postgresAway},
	{kind: "postgres-full", part: "database", do: postgresFull, refused: pgtest.MayMount},
	{kind: "postgres-no-connections", part: "database", do: noConnections},
	{kind: "postgres-slow", part: "database", do: postgresSlow, refused: noCompiler},
	{kind: "sql-reset", part: "sql", quick: true, do: func(_ *testing.T, w *world, during func()) { w.sql.reset(); during() }},
	{kind: "sql-refused", part: "sql", do: onWire(func(w *world) *wire { return w.sql }, (*wire).refuse)},
	{kind: "sql-half-open", part: "sql", do: onWire(func(w *world) *wire { return w.sql }, (*wire).drop)},
	{kind: "api-reset", part: "api", quick: true, do: func(_ *testing.T, w *world, during func()) { w.api.reset(); during() }},
	{kind: "api-refused", part: "api", do: onWire(func(w *world) *wire { return w.api }, (*wire).refuse)},
	{kind: "api-half-open", part: "api", do: onWire(func(w *world) *wire { return w.api }, (*wire).drop)},
	{kind: "apiserver-killed", part: "server", quick: true, do: serverKilled},
	{kind: "apiserver-terminated", part: "server", do: serverTerminated},
	{kind: "etcd-restarted", part: "server", quick: true, do: etcdRestarted},
	{kind: "etcd-restored", part: "server", do: restored},
	{kind: "etcd-restored-behind", part: "server", alone: true, do: restoredBehind},
	{kind: "etcd-overtaken", part: "server", do: overtaken},
	{kind: "etcd-overtaken-killed", part: "server", alone: true, do: overtakenAndKilled},
	{kind: "etcd-restored-killed", part: "server", alone: true, do: restoredAndKilled},
	{kind: "etcd-restored-unrecorded", part: "server", alone: true, do: restoredUnrecorded},
	{kind: "etcd-restored-unseen", part: "server", alone: true, do: restoredUnseen},
	{kind: "etcd-restored-for-one", part: "server", alone: true, do: restoredForOne},
	{kind: "etcd-restored-bumped", part: "server", alone: true, do: restoredBumped},
	{kind: "apiserver-rolled", part: "server", do: rolled, refused: noOlderServer},
	{kind: "clock-steps", do: nil, refused: func() string { return "one machine has one clock: tests of the packages inject it" }},
}

// chosen returns the faults that -faults names, in the order of nesting.
func chosen(t *testing.T) (found []fault) {
	t.Helper()
	named := map[string]bool{}
	for name := range strings.SplitSeq(*kinds, ",") {
		name, without := strings.CutPrefix(name, "-")
		before := len(named)
		for _, f := range faults {
			if f.kind == name || name == "all" || name == quick && f.quick {
				named[f.kind] = !without
			}
		}
		require.True(t, without || len(named) > before, "there is no kind of fault %q, or it is named twice", name)
	}
	for _, f := range faults {
		if named[f.kind] {
			found = append(found, f)
		}
	}
	return found
}

func recreateDefinition(t *testing.T, w *world, during func()) {
	w.mustDelete(t, crds, widgetsDefinition)
	w.hold(t, w.between(0, 1))
	during()
	w.edition++
	w.makeWidgets(t, w.edition)
	w.hold(t, seconds(1))
}

// withdrawRights also cuts the watches, because the API server does not check the rights of a running watch again.
func withdrawRights(t *testing.T, w *world, during func()) {
	w.mustDelete(t, clusterRoleBindings, reader)
	w.api.reset()
	w.hold(t, w.between(2, 6))
	during()
	w.bindReader(t)
}

// secondRecorder is a recorder that was started by mistake, or as a standby. One of the two is stopped at the end; the other goes on.
func secondRecorder(t *testing.T, w *world, during func()) {
	w.recorders.second(t)
	w.hold(t, w.between(2, 5))
	during()
	w.recorders.stopOne(w.random)
}

func secondRecorderWhilePaused(t *testing.T, w *world, during func()) {
	w.recorders.first.signal(syscall.SIGSTOP)
	w.recorders.second(t)
	w.hold(t, w.between(2, 4))
	during()
	w.recorders.first.signal(syscall.SIGCONT)
	w.hold(t, seconds(1))
	w.recorders.stopOne(w.random)
}

func signalled(signal syscall.Signal) func(*testing.T, *world, func()) {
	return func(t *testing.T, w *world, during func()) {
		w.recorders.first.signal(signal)
		w.hold(t, w.between(0, 2))
		during()
	}
}

// killedOften kills each recorder after a random time: while it starts, while it catches up, or later.
func killedOften(t *testing.T, w *world, during func()) {
	for range kills {
		victim := w.recorders.first.current()
		w.recorders.first.signal(syscall.SIGKILL)
		recordertest.Eventually(t.Context(), t, "another recorder", func() bool { return w.recorders.first.current() != victim })
		w.hold(t, w.between(0, 2))
	}
	during()
}

// kills returns how many kills follow each other.
const kills = 20

func paused(t *testing.T, w *world, during func()) {
	w.recorders.first.signal(syscall.SIGSTOP)
	w.hold(t, w.between(1, 6))
	during()
	w.recorders.first.signal(syscall.SIGCONT)
}

// compactedBeyond is the only kind after which a gap is unavoidable. While no recorder runs, etcd compacts the new writes. The
// API server is restarted, so its cache has lost them, too.
func compactedBeyond(t *testing.T, w *world, during func()) {
	w.recorders.first.end()
	w.hold(t, w.between(1, 3))
	current, err := w.oracle.catchUp(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.plane.Etcd.Compact(t.Context(), current))
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
	during()
	w.recorders.first.start(t)
}

func spoolAndKill(t *testing.T, w *world, during func()) {
	w.server.Stop(t)
	w.hold(t, w.between(2, 5))
	w.recorders.first.signal(syscall.SIGKILL)
	during()
	w.hold(t, w.between(0, 2))
	w.server.Start(t)
}

func postgresKilled(t *testing.T, w *world, during func()) {
	w.server.Kill(t)
	w.hold(t, w.between(0, 3))
	during()
	w.server.Start(t)
}

func postgresAway(t *testing.T, w *world, during func()) {
	w.server.Stop(t)
	w.hold(t, max(w.between(10, 30), seconds(away.Seconds())))
	during()
	w.server.Start(t)
}

// postgresFull fills the disk. A full log crashes PostgreSQL, so the test may have to start it again.
func postgresFull(t *testing.T, w *world, during func()) {
	w.server.FillDisk(t)
	w.hold(t, w.between(5, 15))
	during()
	w.server.FreeDisk(t)
	w.server.Start(t)
}

// postgresSlow makes each write to the disk of PostgreSQL slower than most commits usually are.
func postgresSlow(t *testing.T, w *world, during func()) {
	require.NoError(t, os.WriteFile(w.slow, nil, 0o600))
	w.hold(t, w.between(4, 10))
	during()
	require.NoError(t, os.Remove(w.slow))
}

func noConnections(t *testing.T, w *world, during func()) {
	w.database.LimitConnections(t, 0)
	w.database.CutConnections(t)
	w.hold(t, w.between(2, 8))
	during()
	w.database.LimitConnections(t, -1)
}

func onWire(which func(*world) *wire, breaks func(*wire)) func(*testing.T, *world, func()) {
	return func(t *testing.T, w *world, during func()) {
		breaks(which(w))
		w.hold(t, w.between(2, 8))
		during()
		require.NoError(t, which(w).mend())
	}
}

func serverKilled(t *testing.T, w *world, during func()) {
	require.NoError(t, w.plane.APIServer.Kill())
	during()
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
}

func serverTerminated(t *testing.T, w *world, during func()) {
	require.NoError(t, w.plane.APIServer.Stop(t.Context()))
	during()
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
}

func noOlderServer() string {
	if *older == "" {
		return "there is no older kube-apiserver: make control-plane-previous"
	}
	return ""
}

// rolled switches to the other release and back. Resources that only one release serves cannot be followed meanwhile.
func rolled(t *testing.T, w *world, during func()) {
	own, err := w.plane.APIServer.Roll(t.Context(), *older)
	require.NoError(t, err)
	w.hold(t, w.between(2, 6))
	during()
	_, err = w.plane.APIServer.Roll(t.Context(), own)
	require.NoError(t, err)
}

// etcdRestarted resets the watch caches of an API server that keeps running.
func etcdRestarted(t *testing.T, w *world, during func()) {
	require.NoError(t, w.plane.Etcd.Kill())
	during()
	require.NoError(t, w.plane.Etcd.Start(t.Context()))
}
