package stream_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const noBatch = "pods?tier=batch"

// A recording is a record that the test writes step by step.
type recording struct{ *streamtest.Recording }

func newRecording(t *testing.T) recording {
	t.Helper()
	return recording{streamtest.New(t)}
}

// store returns the store for a reflector of pods.
func (s recording) store() *stream.Store {
	s.T.Helper()
	st, _ := s.Follow("pods", "Pod")
	return st.NewStore(s.Queue)
}

// begin starts the next recorder, with another rule.
func (s recording) begin(rule, spool string) *stream.Store {
	s.T.Helper()
	s.Die()
	s.LeaveOut(rule)
	s.Spill(spool)
	return s.store()
}

// overflow adds pods until queued entries are on disk.
func (s recording) overflow(pods *stream.Store) {
	s.T.Helper()
	for rv := 30; rv < 36; rv++ {
		require.NoError(s.T, pods.Add(streamtest.Served(s.T, "Pod", fmt.Sprint("other", rv), rv)))
	}
	require.Positive(s.T, s.Queue.Stats().Spooled)
}

// list gives the pods a list, and writes its deltas.
func (s recording) list(pods *stream.Store, cause delta.Cause, resourceVersion string, items ...any) {
	s.T.Helper()
	s.Pump()
	require.NoError(s.T, pods.BeginReplace(cause, "", ""))
	require.NoError(s.T, pods.ReplacePage(items, resourceVersion))
	require.NoError(s.T, pods.EndReplace(resourceVersion))
	s.Pump()
}

// life returns the deltas of a pod.
func (s recording) life(name string) []string {
	s.T.Helper()
	return s.Texts(`SELECT type || ' ' || source FROM kuberewind.deltas WHERE name = $1 ORDER BY seq`, name)
}

// excluded returns the objects that are excluded on record.
func (s recording) excluded() []string {
	s.T.Helper()
	return s.Texts(`SELECT name FROM kuberewind.exclusions ORDER BY name`)
}

func pod(t *testing.T, name, tier string, rv int) *kube.Object {
	t.Helper()
	o := streamtest.Served(t, "Pod", name, rv)
	o.Labels = map[string]string{"tier": tier}
	return o
}

// The served version of a resource may change while the database is behind.
func TestUnrecordedDecisionsHoldForTheNextRun(t *testing.T) {
	s := newRecording(t)
	s.LeaveOut(noBatch)
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
	require.Equal(t, []string{"left-out"}, s.excluded())

	require.NoError(t, pods.Delete(pod(t, "taken", "batch", 31)))
	require.NoError(t, pods.Delete(pod(t, "left-out", "web", 32)))
	require.Empty(t, s.store().Lives(), "decisions last as long as the lives")
	require.NoError(t, pods.Bookmark("33"))
	s.Pump()
	require.Empty(t, s.excluded())
}

func TestDecisionsEndWithTheResource(t *testing.T) {
	s := newRecording(t)
	s.LeaveOut(noBatch)
	pods := s.store()
	s.list(pods, delta.CauseFirstList, "20", pod(t, "taken", "web", 11), pod(t, "left-out", "batch", 12))
	require.Equal(t, []string{"left-out"}, s.excluded())
	pods.Stream().SetEnded("30")
	pods = s.store()
	require.Empty(t, pods.Lives())
	require.NoError(t, pods.Bookmark("30"))
	s.Pump()
	require.Empty(t, s.excluded())
}

func TestASpooledExclusionIsDecidedAgainOnlyUnderOtherRules(t *testing.T) {
	for rule, want := range map[string][]string{
		"pods?tier=web": {"Sync relist"},
		noBatch:         {}, // though its present label would include it
	} {
		t.Run(rule, func(t *testing.T) {
			s, dir := newRecording(t), t.TempDir()
			pods := s.begin(noBatch, dir)
			s.list(pods, delta.CauseFirstList, "20")
			require.NoError(t, pods.Add(pod(t, "x", "batch", 21)))
			s.overflow(pods)
			pods = s.begin(rule, dir)
			s.list(pods, delta.CauseConfiguration, "40", pod(t, "x", "db", 39))
			require.Equal(t, want, s.life("x"))
			require.Equal(t, len(want) == 0, len(s.excluded()) == 1)
		})
	}
}

func TestAnExclusionOfAnUnfinishedFirstListIsDecidedAgainUnderOtherRules(t *testing.T) {
	s, dir := newRecording(t), t.TempDir()
	pods := s.begin(noBatch, dir)
	require.NoError(t, pods.BeginReplace(delta.CauseFirstList, "", ""))
	require.NoError(t, pods.ReplacePage([]any{pod(t, "x", "batch", 10), streamtest.Served(t, "Pod", "y", 11)}, "20"))
	s.Pump()
	require.Equal(t, []string{"x"}, s.excluded())
	pods = s.begin("pods?tier=web", dir)
	s.list(pods, delta.CauseFirstList, "40", pod(t, "x", "batch", 10))
	require.Equal(t, []string{"Sync list"}, s.life("x"))
	require.Empty(t, s.excluded())
}

func TestRulesThatAreRestoredBeforeAListRevokeNothing(t *testing.T) {
	s, dir := newRecording(t), t.TempDir()
	s.list(s.begin(noBatch, dir), delta.CauseFirstList, "20", pod(t, "x", "batch", 10))
	require.NoError(t, s.begin("pods?tier=web", dir).Interrupted(delta.CauseUnreachable, "connection refused"))
	s.Pump()
	require.Equal(t, []string{"x"}, s.excluded())
	require.NoError(t, s.begin(noBatch, dir).Update(pod(t, "x", "db", 21)))
	s.Pump()
	require.Empty(t, s.life("x"))
}

func TestRulesThatAreRestoredWithinAListDecideAgain(t *testing.T) {
	x, y := func() any { return pod(t, "x", "web", 21) }, func() any { return pod(t, "y", "db", 22) }
	whole := func(s recording, pods *stream.Store) { s.list(pods, delta.CauseFirstList, "20") }
	for name, test := range map[string]struct {
		before func(recording, *stream.Store) // under the restored rules
		cut    func(*stream.Store)            // under other rules
	}{
		"":                      {whole, func(*stream.Store) {}},
		"interrupted before it": {whole, func(pods *stream.Store) { require.NoError(t, pods.Interrupted(delta.CauseUnreachable, "")) }},
		"within the first": {func(s recording, pods *stream.Store) {
			require.NoError(t, pods.BeginReplace(delta.CauseFirstList, "", ""))
			require.NoError(t, pods.ReplacePage([]any{pod(t, "z", "web", 20)}, "30"))
			s.Pump()
		}, func(*stream.Store) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newRecording(t), t.TempDir()
			test.before(s, s.begin(noBatch, dir))
			pods := s.begin("pods?tier=web", dir)
			test.cut(pods)
			require.NoError(t, pods.BeginReplace(delta.CauseConfiguration, "", ""))
			require.NoError(t, pods.ReplacePage([]any{x(), y()}, "30"))
			s.Pump()
			require.Equal(t, []string{"x"}, s.excluded())
			s.list(s.begin(noBatch, dir), delta.CauseConfiguration, "40", x(), y())
			require.Equal(t, []string{"Sync relist"}, s.life("x"))
			require.Empty(t, s.excluded())
		})
	}
}

func TestAnAbortedListExcludesNothing(t *testing.T) {
	s, dir := newRecording(t), t.TempDir()
	s.list(s.begin(noBatch, dir), delta.CauseFirstList, "20", pod(t, "z", "batch", 11))
	pods := s.begin("pods?tier=web", dir)
	require.NoError(t, pods.BeginReplace(delta.CauseConfiguration, "", ""))
	require.NoError(t, pods.ReplacePage([]any{pod(t, "x", "web", 21)}, "30"))
	pods.AbortReplace()
	require.NoError(t, pods.Interrupted(delta.CauseForbidden, ""))
	s.Pump()
	require.Equal(t, []string{"z"}, s.excluded())
}

// The list has decided about some objects. A part of it is recorded, and its end is in the spool.
func TestTheDecisionsOfAListHoldEvenIfItsEndIsOnlyInTheSpool(t *testing.T) {
	s, dir := newRecording(t), t.TempDir()
	pods := s.begin(noBatch, dir)
	s.list(pods, delta.CauseFirstList, "20")
	require.NoError(t, pods.BeginReplace(delta.CauseExpired, "", ""))
	require.NoError(t, pods.ReplacePage([]any{pod(t, "x", "batch", 21), pod(t, "y", "db", 22)}, "30"))
	s.Pump()
	require.NoError(t, pods.EndReplace("30"))
	s.overflow(pods)
	pods = s.begin(noBatch, dir)
	require.NoError(t, pods.Update(pod(t, "x", "db", 40)))
	s.Pump()
	require.Empty(t, s.life("x"))
	require.Equal(t, []string{"x"}, s.excluded())
}

func TestARecordedObjectIsNotExcludedEvenIfTheListCouldNotReadIt(t *testing.T) {
	for _, rule := range []string{"pods/other", ""} {
		s, dir := newRecording(t), t.TempDir()
		s.list(s.begin(noBatch, dir), delta.CauseFirstList, "20", pod(t, "x", "batch", 10))
		pods := s.begin(rule, dir)
		require.NoError(t, pods.BeginReplace(delta.CauseConfiguration, "", ""))
		require.NoError(t, pods.Unreadable("a/x"))
		require.NoError(t, pods.EndReplace("30"))
		require.NoError(t, pods.Update(pod(t, "x", "batch", 31)))
		s.Pump()
		require.NotEmpty(t, s.life("x"))
		require.Empty(t, s.excluded(), "under %q", rule)
	}
}

func TestSpooledLivesStayRecordedUnderOtherRules(t *testing.T) {
	for _, rule := range []string{"pods/a", noBatch} {
		t.Run(rule, func(t *testing.T) {
			s, dir := newRecording(t), t.TempDir()
			pods := s.begin("", dir)
			s.list(pods, delta.CauseFirstList, "20")
			require.NoError(t, pods.Add(pod(t, "x", "batch", 21)))
			s.overflow(pods)
			pods = s.begin(rule, dir)
			s.list(pods, delta.CauseConfiguration, "40", pod(t, "x", "batch", 39))
			require.NoError(t, pods.Update(pod(t, "x", "batch", 41)))
			s.Pump()
			require.Equal(t, []string{"Added watch", "Sync relist", "Updated watch"}, s.life("x"))
		})
	}
}

// The first page of a list was behind the record, and the snapshot was lost. The next list has passed the record.
func TestARepeatedListEndsTheGapOfTheFirst(t *testing.T) {
	s := newRecording(t)
	pods := s.store()
	s.list(pods, delta.CauseFirstList, "20")
	require.NoError(t, pods.BeginReplace(delta.CauseHistoryReversed, "why", "20"))
	pods.AbortReplace()
	s.list(pods, delta.CauseExpired, "30")
	require.Empty(t, pods.Stream().Recorded().OpenGap())
	require.Equal(t, []string{"first_list", "history_reversed"}, s.Texts(`SELECT cause FROM kuberewind.gaps ORDER BY gap`))
}
