package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at returns a time of these tests.
func at(seconds int64) time.Time { return time.Unix(seconds, 0) }

// restoredOnce returns the oracle of an etcd that was put back from some revision to 10, between the seconds 100 and 110.
func restoredOnce() *oracle {
	return &oracle{generation: 1, forks: []int64{10}, restores: []span{{at(100), at(110)}}}
}

func TestWhichGapsAreNeedless(t *testing.T) {
	for name, c := range map[string]struct {
		gap      gap
		needless bool
	}{
		"nothing was missed":                     {gap{cause: "unreachable", outcome: "resumed", from: 5, to: 7}, false},
		"etcd had its history":                   {gap{cause: "expired", outcome: "relisted", from: 5, to: 7}, true},
		"a rollback ended it where it began":     {gap{cause: "unreachable", outcome: "relisted", from: 5, to: 5, divided: true}, false},
		"a list ended it where it began":         {gap{cause: "unreachable", outcome: "relisted", from: 5, to: 5}, true},
		"etcd was put back":                      {gap{cause: "history_reversed", outcome: "relisted", from: 12, to: 10, restored: true}, false},
		"etcd was not put back":                  {gap{cause: "history_reversed", outcome: "relisted", from: 12, to: 10}, true},
		"a resource on record is listed as new":  {gap{cause: firstList, outcome: "relisted", to: 7}, true},
		"a definition was deleted, of another":   {gap{resource: "pods", cause: "not_found", outcome: "relisted", from: 5, to: 7}, true},
		"an empty list followed a short failure": {gap{cause: "unreachable", outcome: "equal", from: 5, to: 7}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.needless, newLedger(restoredOnce(), nil).needless(c.gap))
		})
	}
}

func TestAGapIsUnaffordableIfTheLogSaysSo(t *testing.T) {
	const log = `{"msg":"history cannot be recovered","group":"apps","resource":"replicasets","reflector":"apps/v1 replicasets","from":4,"to":9,"reached":"5","error":"the recoveries of all streams have used up their requests"}`
	for name, c := range map[string]struct {
		gap          gap
		unaffordable bool
	}{
		"the same":           {gap{group: "apps", resource: "replicasets", from: 5, to: 9}, true},
		"begins on record":   {gap{group: "apps", resource: "replicasets", from: 3, to: 9}, true},
		"another resource":   {gap{group: "apps", resource: "deployments", from: 5, to: 9}, false},
		"a gap that follows": {gap{group: "apps", resource: "replicasets", from: 6, to: 9}, false},
		"a gap before":       {gap{group: "apps", resource: "replicasets", from: 3, to: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.unaffordable, c.gap.unaffordable("{}\n"+log+"\n"))
		})
	}
	require.False(t, (&gap{group: "apps", resource: "replicasets", from: 5, to: 9}).unaffordable(strings.ReplaceAll(log, "used up", "not used up all of")))
}

func TestTheRowsOfAWatchMustBeInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		source, revision string
		passed           int
	}{
		"a later revision":               {"watch", "13", 0},
		"another delete at the revision": {"watch", "12", 0},
		"an earlier revision":            {"watch", "11", 1},
		"an earlier revision of a list":  {"relist", "11", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(restoredOnce(), nil)
			l.inOrder(row{object: object{resource: "pods"}, source: "watch", text: "12", observed: at(120)})
			l.inOrder(row{object: object{resource: "secrets"}, source: "watch", text: "1", observed: at(120)})
			l.inOrder(row{object: object{resource: "pods"}, source: c.source, text: c.revision, observed: at(140)})
			require.Len(t, l.passed, c.passed)
			for _, x := range l.passed {
				rollback := gap{resource: "pods", cause: "history_reversed", fromAt: at(90), toAt: at(130)}
				require.True(t, rollback.excuses(x))
				rollback.toAt = at(110)
				require.False(t, rollback.excuses(x))
			}
		})
	}
}

func TestALostWriteIsServedAfterTheRestoreOnlyWithinAGap(t *testing.T) {
	for name, c := range map[string]struct {
		revision, observed int64
		mistaken           int
	}{
		"it was served before the restore":     {12, 99, 0},
		"it was served after the restore":      {12, 120, 1},
		"the restored history has it, too":     {9, 120, 0},
		"it was served while etcd was stopped": {12, 105, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(restoredOnce(), nil)
			s := &state{write: write{object: object{resource: "secrets", name: "a"}, revision: c.revision, kind: "Added", version: "v1"}}
			l.expected[place{s.object, c.revision}], l.open[s] = []*state{s}, true
			x := row{object: s.object, seq: 1, kind: "Added", source: "watch", version: "v1", text: map[int64]string{9: "9", 12: "12"}[c.revision], observed: at(c.observed)}
			l.enter(x)
			require.Empty(t, l.faults)
			require.Empty(t, l.open)
			require.Len(t, l.mistaken, c.mistaken)
			for _, m := range l.mistaken {
				ofIt := gap{resource: "secrets", cause: "history_reversed", fromAt: at(90), toAt: at(130)}
				require.True(t, ofIt.excuses(m))
				ofIt.toAt = at(104)
				require.False(t, ofIt.excuses(m))
			}
		})
	}
}
