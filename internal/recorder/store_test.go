package recorder

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

const noBatch = "pods?tier=batch"

// store is what a reflector of pods feeds.
func (s *swept) store() *store {
	s.t.Helper()
	st, fifo := s.follow("pods", "Pod")
	return newStore(st, &streamRun{fifo: fifo})
}

// begin has the next recorder begin, with another rule.
func (s *swept) begin(rule, spool string) *store {
	s.t.Helper()
	s.die()
	s.leaveOut(rule)
	s.spill(spool)
	return s.store()
}

// overflow adds pods until what is queued lies on disk.
func (s *swept) overflow(pods *store) {
	s.t.Helper()
	for rv := 30; rv < 36; rv++ {
		require.NoError(s.t, pods.Add(served(s.t, "Pod", fmt.Sprint("other", rv), rv)))
	}
	require.Positive(s.t, s.queue.Stats().Spooled)
}

// list gives the pods a list, and writes what comes of it.
func (s *swept) list(pods *store, cause delta.Cause, resourceVersion string, items ...any) {
	s.t.Helper()
	s.pump()
	require.NoError(s.t, pods.BeginReplace(cause, "", ""))
	require.NoError(s.t, pods.ReplacePage(items, resourceVersion))
	require.NoError(s.t, pods.EndReplace(resourceVersion))
	s.pump()
}

// life gives the deltas of a pod.
func (s *swept) life(name string) []string {
	s.t.Helper()
	return s.texts(`SELECT type || ' ' || source FROM kuberewind.deltas WHERE name = $1 ORDER BY seq`, name)
}

// leftOut are the objects that are on record as left out.
func (s *swept) leftOut() []string {
	s.t.Helper()
	return s.texts(`SELECT name FROM kuberewind.exclusions ORDER BY name`)
}

func (s *swept) texts(sql string, args ...any) []string {
	s.t.Helper()
	rows, err := s.conn.Query(s.t.Context(), sql, args...)
	require.NoError(s.t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s.t, err)
	return texts
}

func pod(t *testing.T, name, tier string, rv int) *kube.Object {
	t.Helper()
	o := served(t, "Pod", name, rv)
	o.Labels = map[string]string{"tier": tier}
	return o
}

// The served version of a resource may change while the database is behind.
func TestDecisionsThatAreNotOnRecordYetHoldForTheNextRun(t *testing.T) {
	s := newSwept(t)
	s.leaveOut(noBatch)
	pods := s.store()
	s.list(pods, delta.CauseFirstList, "20")
	require.NoError(t, pods.Add(pod(t, "taken", "web", 21)))
	require.NoError(t, pods.Add(pod(t, "left-out", "batch", 22)))
	pods = s.store()
	require.NoError(t, pods.Update(pod(t, "taken", "batch", 23)))
	require.NoError(t, pods.Update(pod(t, "left-out", "web", 24)))
	pods = s.store()
	s.list(pods, delta.CauseExpired, "30", pod(t, "taken", "batch", 23), pod(t, "left-out", "web", 24))
	require.Equal(t, []string{"Added watch", "Updated watch"}, s.life("taken"))
	require.Empty(t, s.life("left-out"))
	require.Equal(t, []string{"left-out"}, s.leftOut())

	require.NoError(t, pods.Delete(pod(t, "taken", "batch", 31)))
	require.NoError(t, pods.Delete(pod(t, "left-out", "web", 32)))
	require.Empty(t, s.store().stream.lives, "they last as long as the lives")
	require.NoError(t, pods.Bookmark("33"))
	s.pump()
	require.Empty(t, s.leftOut())
}

func TestDecisionsEndWithTheResource(t *testing.T) {
	s := newSwept(t)
	s.leaveOut(noBatch)
	pods := s.store()
	s.list(pods, delta.CauseFirstList, "20", pod(t, "taken", "web", 11), pod(t, "left-out", "batch", 12))
	require.Equal(t, []string{"left-out"}, s.leftOut())
	pods.stream.ended = "30"
	pods = s.store()
	require.Empty(t, pods.stream.lives)
	require.NoError(t, pods.Bookmark("30"))
	s.pump()
	require.Empty(t, s.leftOut())
}

func TestWhatWasLeftOutInTheSpoolIsDecidedAnewOnlyUnderOtherRules(t *testing.T) {
	for rule, want := range map[string][]string{
		"pods?tier=web": {"Sync relist"},
		noBatch:         {}, // though by its label it would be taken by now
	} {
		t.Run(rule, func(t *testing.T) {
			s, dir := newSwept(t), t.TempDir()
			pods := s.begin(noBatch, dir)
			s.list(pods, delta.CauseFirstList, "20")
			require.NoError(t, pods.Add(pod(t, "x", "batch", 21)))
			s.overflow(pods)
			pods = s.begin(rule, dir)
			s.list(pods, delta.CauseConfiguration, "40", pod(t, "x", "db", 39))
			require.Equal(t, want, s.life("x"))
			require.Equal(t, len(want) == 0, len(s.leftOut()) == 1)
		})
	}
}

func TestWhatAFirstListLeftOutIsDecidedAnewUnderOtherRulesThoughItDidNotEnd(t *testing.T) {
	s, dir := newSwept(t), t.TempDir()
	pods := s.begin(noBatch, dir)
	require.NoError(t, pods.BeginReplace(delta.CauseFirstList, "", ""))
	require.NoError(t, pods.ReplacePage([]any{pod(t, "x", "batch", 10), served(t, "Pod", "y", 11)}, "20"))
	s.pump()
	require.Equal(t, []string{"x"}, s.leftOut())
	pods = s.begin("pods?tier=web", dir)
	s.list(pods, delta.CauseFirstList, "40", pod(t, "x", "batch", 10))
	require.Equal(t, []string{"Sync list"}, s.life("x"))
	require.Empty(t, s.leftOut())
}

func TestRulesThatAreChangedBackBeforeAListTakeNothingBack(t *testing.T) {
	s, dir := newSwept(t), t.TempDir()
	s.list(s.begin(noBatch, dir), delta.CauseFirstList, "20", pod(t, "x", "batch", 10))
	require.NoError(t, s.begin("pods?tier=web", dir).Interrupted(delta.CauseUnreachable, "connection refused"))
	s.pump()
	require.Equal(t, []string{"x"}, s.leftOut())
	require.NoError(t, s.begin(noBatch, dir).Update(pod(t, "x", "db", 21)))
	s.pump()
	require.Empty(t, s.life("x"))
}

func TestRulesThatAreChangedBackWithinAListDecideAnew(t *testing.T) {
	x, y := func() any { return pod(t, "x", "web", 21) }, func() any { return pod(t, "y", "db", 22) }
	whole := func(s *swept, pods *store) { s.list(pods, delta.CauseFirstList, "20") }
	for name, test := range map[string]struct {
		before func(*swept, *store) // under the rules to which they are changed back
		cut    func(*store)         // under others
	}{
		"":                      {whole, func(*store) {}},
		"interrupted before it": {whole, func(pods *store) { require.NoError(t, pods.Interrupted(delta.CauseUnreachable, "")) }},
		"within the first": {func(s *swept, pods *store) {
			require.NoError(t, pods.BeginReplace(delta.CauseFirstList, "", ""))
			require.NoError(t, pods.ReplacePage([]any{pod(t, "z", "web", 20)}, "30"))
			s.pump()
		}, func(*store) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newSwept(t), t.TempDir()
			test.before(s, s.begin(noBatch, dir))
			pods := s.begin("pods?tier=web", dir)
			test.cut(pods)
			require.NoError(t, pods.BeginReplace(delta.CauseConfiguration, "", ""))
			require.NoError(t, pods.ReplacePage([]any{x(), y()}, "30"))
			s.pump()
			require.Equal(t, []string{"x"}, s.leftOut())
			s.list(s.begin(noBatch, dir), delta.CauseConfiguration, "40", x(), y())
			require.Equal(t, []string{"Sync relist"}, s.life("x"))
			require.Empty(t, s.leftOut())
		})
	}
}

func TestAListThatIsGivenUpLeavesNobodyOut(t *testing.T) {
	s, dir := newSwept(t), t.TempDir()
	s.list(s.begin(noBatch, dir), delta.CauseFirstList, "20", pod(t, "z", "batch", 11))
	pods := s.begin("pods?tier=web", dir)
	require.NoError(t, pods.BeginReplace(delta.CauseConfiguration, "", ""))
	require.NoError(t, pods.ReplacePage([]any{pod(t, "x", "web", 21)}, "30"))
	pods.AbortReplace()
	require.NoError(t, pods.Interrupted(delta.CauseForbidden, ""))
	s.pump()
	require.Equal(t, []string{"z"}, s.leftOut())
}

// It was decided about some by the list, which is on record in part; its end is in the spool.
func TestWhatAListHasDecidedHoldsThoughItsEndIsInTheSpoolOnly(t *testing.T) {
	s, dir := newSwept(t), t.TempDir()
	pods := s.begin(noBatch, dir)
	s.list(pods, delta.CauseFirstList, "20")
	require.NoError(t, pods.BeginReplace(delta.CauseExpired, "", ""))
	require.NoError(t, pods.ReplacePage([]any{pod(t, "x", "batch", 21), pod(t, "y", "db", 22)}, "30"))
	s.pump()
	require.NoError(t, pods.EndReplace("30"))
	s.overflow(pods)
	pods = s.begin(noBatch, dir)
	require.NoError(t, pods.Update(pod(t, "x", "db", 40)))
	s.pump()
	require.Empty(t, s.life("x"))
	require.Equal(t, []string{"x"}, s.leftOut())
}

func TestWhatIsRecordedIsNotLeftOutAnyMoreThoughTheListCouldNotBeRead(t *testing.T) {
	for _, rule := range []string{"pods/other", ""} {
		s, dir := newSwept(t), t.TempDir()
		s.list(s.begin(noBatch, dir), delta.CauseFirstList, "20", pod(t, "x", "batch", 10))
		pods := s.begin(rule, dir)
		require.NoError(t, pods.BeginReplace(delta.CauseConfiguration, "", ""))
		require.NoError(t, pods.Unread("a/x"))
		require.NoError(t, pods.EndReplace("30"))
		require.NoError(t, pods.Update(pod(t, "x", "batch", 31)))
		s.pump()
		require.NotEmpty(t, s.life("x"))
		require.Empty(t, s.leftOut(), "under %q", rule)
	}
}

func TestWhatTheSpoolHoldsGoesOnBeingRecordedUnderOtherRules(t *testing.T) {
	for _, rule := range []string{"pods/a", noBatch} {
		t.Run(rule, func(t *testing.T) {
			s, dir := newSwept(t), t.TempDir()
			pods := s.begin("", dir)
			s.list(pods, delta.CauseFirstList, "20")
			require.NoError(t, pods.Add(pod(t, "x", "batch", 21)))
			s.overflow(pods)
			pods = s.begin(rule, dir)
			s.list(pods, delta.CauseConfiguration, "40", pod(t, "x", "batch", 39))
			require.NoError(t, pods.Update(pod(t, "x", "batch", 41)))
			s.pump()
			require.Equal(t, []string{"Added watch", "Sync relist", "Updated watch"}, s.life("x"))
		})
	}
}

// The rules are others than those of the recorder before, and etcd was put back when none ran.
func TestAListThatIsDueAnywaySaysThatHistoryWentBackwards(t *testing.T) {
	c := rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "configmaps"})
	c.ListWith((&etcd{now: 50}).lister)
	c.Follow(func(string) {})
	c.Recall(rollback.Recalled{Position: "60"})
	proof, err := c.Reversed(t.Context(), "")
	require.NoError(t, err)
	require.Contains(t, proof, "which etcd has not come to")

	queue := deltafifo.New(deltafifo.Options{})
	run := &streamRun{fifo: queue.FIFO(deltafifo.FIFOOptions{})}
	everything, err := filter.New(nil, nil)
	require.NoError(t, err)
	st := newStore(&stream{record: &postgres.Stream{}, rules: everything.For(schema.GroupResource{Resource: "configmaps"}), settle: func() {}, etcd: c}, run)
	require.NoError(t, st.BeginReplace(delta.CauseConfiguration, "", ""))
	require.NoError(t, st.EndReplace("50"))
	require.False(t, c.HasLeft())
	queue.Close()
	entries, err := queue.Next(t.Context(), 10, 1<<20, 0)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		require.Equal(t, delta.CauseHistoryReversed, e.Marker.Cause, "its numbers mean something else")
		require.Equal(t, proof, e.Marker.Detail)
	}
}

// The first page of a list was behind the record, and the snapshot was lost. The next one has passed the record.
func TestAListThatIsBegunAnewEndsTheGapOfTheFirst(t *testing.T) {
	s := newSwept(t)
	pods := s.store()
	s.list(pods, delta.CauseFirstList, "20")
	require.NoError(t, pods.BeginReplace(delta.CauseHistoryReversed, "why", "20"))
	pods.AbortReplace()
	s.list(pods, delta.CauseExpired, "30")
	require.Empty(t, pods.stream.record.OpenGap())
	require.Equal(t, []string{"first_list", "history_reversed"}, s.texts(`SELECT cause FROM kuberewind.gaps ORDER BY gap`))
}
