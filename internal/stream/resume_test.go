package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A replica was promoted that lacked the last commits. The queue has removed their entries, and the spool begins after
// them.
func TestASpoolIsNotUsedIfTheDatabaseHasLostCommits(t *testing.T) {
	s, dir, pods := listed(t)
	one := func(sql string) (text string) {
		t.Helper()
		require.NoError(t, s.Conn.QueryRow(t.Context(), sql).Scan(&text))
		return text
	}
	before := one(`SELECT format('seq = %s, batch = %s, digest = %L, observed_at = %L, spool = %L, spool_next = %s', seq, batch, digest, observed_at, spool, spool_next) FROM kuberewind.heads`)
	require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "a", 21)))
	s.Pump()
	for rv := 22; rv < 28; rv++ {
		require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "a", rv)))
	}
	require.Positive(t, s.Queue.Stats().Spooled)
	for _, sql := range []string{
		`DELETE FROM kuberewind.deltas_data WHERE seq = (SELECT seq FROM kuberewind.heads)`,
		`DELETE FROM kuberewind.batches WHERE batch = (SELECT batch FROM kuberewind.heads)`,
		`UPDATE kuberewind.heads SET ` + before,
	} {
		_, err := s.Conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	s.Die()
	s.Spill(dir)
	require.NotEmpty(t, s.Folder.Aside())
	require.Zero(t, s.Queue.Stats().Spooled)
}

// A clock may be ahead of the wall clock by a minute. A recorder may start again before the wall clock has caught up.
func TestARecorderBeginsAfterItsSpoolEvenIfItsClockIsBehind(t *testing.T) {
	s := newRecording(t)
	dir := t.TempDir()
	s.Spill(dir)
	_, pods := s.Follow("pods", "Pod")
	require.NoError(t, pods.Replace([]any{streamtest.Served(t, "Pod", "a", 11)}, "11"))
	s.Pump()
	s.At = s.At.Add(40 * time.Second)
	for rv := 12; rv < 16; rv++ {
		require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "a", rv)))
	}
	seen := s.At
	s.At = s.At.Add(-30 * time.Second)
	s.Die()
	s.Spill(dir)
	info := s.Sink.Info()
	require.True(t, info.Started.After(seen))
	require.Equal(t, info.Started, s.Clock.Now())
	require.NoError(t, s.Sink.RecordPause(t.Context(), s.Seen))
	st, _ := s.Follow("pods", "Pod")
	require.Equal(t, info.Started, st.Since())
	require.True(t, st.CatchesUp(), "the next deltas happened meanwhile")
	entries, err := s.Queue.Next(t.Context(), 1, 0, 0)
	require.NoError(t, err)
	require.True(t, entries[0].Observed.Before(st.Since()), "an earlier recorder saw it live")
	var from, to time.Time
	require.NoError(t, s.Conn.QueryRow(t.Context(), `SELECT from_at, to_at FROM kuberewind.pauses`).Scan(&from, &to))
	require.True(t, seen.Equal(from))
	require.True(t, info.Started.Equal(to))
}

func TestAPauseLastsForAsLongAsTheSpoolIsRead(t *testing.T) {
	s := newRecording(t)
	dir := t.TempDir()
	s.Spill(dir)
	_, pods := s.Follow("pods", "Pod")
	require.NoError(t, pods.Replace([]any{streamtest.Served(t, "Pod", "a", 11)}, "11"))
	s.Pump()
	for rv := 12; rv < 16; rv++ {
		require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "a", rv)))
	}
	s.Die()
	s.At = s.At.Add(3 * time.Minute)
	s.Spill(dir)
	info := s.Sink.Info()
	require.True(t, info.Started.After(s.At))
	st, _ := s.Follow("pods", "Pod")
	require.Equal(t, info.Started, st.Since())
	require.Equal(t, info.Started, st.CatchesUpTo())
}

// listed returns a recorder with a spool in a folder, and Pods with a list on record up to 20. The list has one Pod, of
// version 11.
func listed(t *testing.T) (s recording, dir string, pods *deltafifo.FIFO) {
	t.Helper()
	s, dir = newRecording(t), t.TempDir()
	s.Spill(dir)
	_, pods = s.Follow("pods", "Pod")
	require.NoError(t, pods.Replace([]any{streamtest.Served(t, "Pod", "a", 11)}, "20"))
	s.Pump()
	return s, dir, pods
}

// The record has the interruption of the stream. The end of the process cuts the list that follows it.
func TestAPartOfAListInTheSpoolKeepsTheRecordedCause(t *testing.T) {
	s, dir, pods := listed(t)
	require.NoError(t, pods.Interrupted("expired", "why"))
	s.Pump()
	require.NoError(t, pods.BeginReplace("expired", "why", "20"))
	page := []any{}
	for rv := 30; rv < 36; rv++ {
		page = append(page, streamtest.Served(t, "Pod", fmt.Sprint("b", rv), rv))
	}
	require.NoError(t, pods.ReplacePage(page, "40"))
	require.Positive(t, s.Queue.Stats().Spooled)
	s.Die()
	s.Spill(dir)
	st, _ := s.Follow("pods", "Pod")
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: "expired"}}, st.Next())
}

// The database was away when etcd was restored. The recorder has ended before the database was back.
func TestARollbackThatTheSpoolHoldsTheEndOfIsNotFoundASecondTime(t *testing.T) {
	for name, recorded := range map[string]bool{"its beginning is on record": true, "its beginning is in the spool, too": false} {
		t.Run(name, func(t *testing.T) {
			s, dir, pods := listed(t)
			require.NoError(t, pods.Interrupted(delta.CauseHistoryReversed, "why"))
			if recorded {
				s.Pump()
			}
			require.NoError(t, pods.BeginReplace(delta.CauseHistoryReversed, "why", "20"))
			page := []any{}
			for rv := 3; rv < 9; rv++ {
				page = append(page, streamtest.Served(t, "Pod", fmt.Sprint("b", rv), rv))
			}
			require.NoError(t, pods.ReplacePage(page, "15"))
			require.NoError(t, pods.EndReplace("15"))
			require.Positive(t, s.Queue.Stats().Spooled)
			s.Die()
			s.Spill(dir)

			st, _ := s.Follow("pods", "Pod")
			st.RollbackStream().Recall(rollback.Recalled{
				PastRollbacks: []postgres.Reversal{{Stream: 7, Proof: "another stream had found it"}},
				Unverified:    []postgres.Version{{Namespace: "default", Name: "a", UID: "a", ResourceVersion: "11"}},
			})
			require.Equal(t, lifecycle.Decision{Do: lifecycle.Resume, At: "15", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}, st.Next())
			st.Recall()
			proofs := []string{}
			st.RollbackStream().ListWith((&stream.FakeEtcd{Now: 15}).Lister)
			st.RollbackStream().Follow(func(proof string) { proofs = append(proofs, proof) })
			proof, err := st.RollbackStream().CheckRollback(t.Context(), "15")
			require.NoError(t, err)
			require.Empty(t, proof)
			require.NoError(t, s.RollbackStreams.Probe(t.Context()))
			require.Empty(t, proofs)
		})
	}
}

// A rollback was found while the database was away. The spool has the gap of a stream, and nothing else of it.
func TestAStreamThatTheSpoolOnlyNamesInAnothersMarkerIsListed(t *testing.T) {
	s, dir, pods := listed(t)
	require.NoError(t, pods.Add(streamtest.Served(t, "Pod", "b", 21)))
	nodes, _ := s.Follow("nodes", "Node")
	mine, _ := s.Follow("pods", "Pod")
	require.NoError(t, s.Queue.InterruptTogether(t.Context(), delta.CauseHistoryReversed, "why", []deltafifo.Interruption{{Stream: mine}, {Stream: nodes}}))
	for rv := 22; s.Queue.Stats().Spooled == 0; rv++ {
		require.NoError(t, pods.Add(streamtest.Served(t, "Pod", fmt.Sprint("b", rv), rv)))
	}
	s.Die()
	s.Spill(dir)
	for _, name := range []string{"pods", "nodes"} {
		st, _ := s.Follow(name, map[string]string{"pods": "Pod", "nodes": "Node"}[name])
		require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseHistoryReversed}}, st.Next(), name)
	}
}

// The recorder has ended before it looked, and the new history has passed the versions in the spool.
func TestTheNextRecorderLooksAtTheVersionsInTheSpool(t *testing.T) {
	for name, test := range map[string]struct {
		lost  int // how many of the newest versions belong to a lost history
		found bool
	}{"its newest version is lost": {1, true}, "some versions are lost": {4, true}, "no version is lost": {0, false}} {
		t.Run(name, func(t *testing.T) {
			s, dir, pods := listed(t)
			const versions = 3 * rollback.KeptSamples
			etcd := &stream.FakeEtcd{Now: 500, Versions: []*kube.Object{streamtest.Served(t, "Pod", "a", 11)}}
			for i := range versions {
				o := streamtest.Served(t, "Pod", fmt.Sprint("b", i), 21+i)
				require.NoError(t, pods.Add(o))
				if i < versions-test.lost {
					etcd.Versions = append(etcd.Versions, o)
				}
			}
			etcd.Versions = append(etcd.Versions, streamtest.Served(t, "Pod", fmt.Sprint("b", versions-1), 300))
			require.NoError(t, pods.Delete(streamtest.Served(t, "Pod", "a", 100)))
			require.Positive(t, s.Queue.Stats().Spooled)
			s.Die()
			s.Spill(dir)

			st, _ := s.Follow("pods", "Pod")
			st.Recall()
			proofs := []string{}
			st.RollbackStream().ListWith(etcd.Lister)
			st.RollbackStream().Follow(func(proof string) { proofs = append(proofs, proof) })
			require.NoError(t, s.RollbackStreams.Probe(t.Context()))
			require.Equal(t, test.found, len(proofs) > 0, proofs)
			require.Less(t, etcd.Asked.Load(), int64(2*rollback.KeptSamples))
		})
	}
}

// A list in the spool was made under the rules of the recorder that wrote it. Objects that only the present rules
// include are in no list yet.
func TestAListInTheSpoolCountsForItsOwnRules(t *testing.T) {
	const batch = "pods?tier=batch"
	due, done := lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseConfiguration}}, lifecycle.Decision{Do: lifecycle.Resume, At: "40", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}
	for name, test := range map[string]struct {
		record       bool   // whether there was a list before
		before, rule string // the rules of that list, and of the list in the spool
		now          string
		want         lifecycle.Decision
	}{
		"the rules have changed since":                        {true, batch, batch, "", due},
		"the rules from before that list are back":            {true, "", batch, "", due},
		"the rules have changed since, without a list before": {false, "", batch, "", due},
		"other rules caused that list, and still hold":        {true, "", batch, batch, done},
		"the rules are the same, without a list before":       {false, "", batch, batch, done},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRecording(t)
			dir := t.TempDir()
			if test.record {
				s.LeaveOut(test.before)
				_, pods := s.Follow("pods", "Pod")
				require.NoError(t, pods.Replace([]any{streamtest.Served(t, "Pod", "a", 11)}, "20"))
				s.Pump()
				s.Die()
			}
			s.LeaveOut(test.rule)
			s.Spill(dir)
			_, pods := s.Follow("pods", "Pod")
			page := []any{}
			for rv := 30; rv < 36; rv++ {
				page = append(page, streamtest.Served(t, "Pod", fmt.Sprint("b", rv), rv))
			}
			require.NoError(t, pods.Replace(page, "40"))
			require.Positive(t, s.Queue.Stats().Spooled)
			s.Die()
			s.LeaveOut(test.now)
			s.Spill(dir)

			st, _ := s.Follow("pods", "Pod")
			require.Equal(t, test.want, st.Next())
			s.Pump()
			require.Equal(t, test.want, st.Next(), "who writes it does not matter")
			s.Die()
			s.LeaveOut(test.now)
			st, _ = s.Follow("pods", "Pod")
			require.Equal(t, test.want, st.Next(), "nor when")
		})
	}
}

// The API server is restarted before it has moved the position of a quiet stream. The stream has to look at each revision
// that no stream is known to have.
func TestRevisionsInTheSpoolAreThoseOfTheirStream(t *testing.T) {
	s, dir, pods := listed(t)
	for rv := 22; rv < 28; rv++ {
		require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "a", rv)))
	}
	require.Positive(t, s.Queue.Stats().Spooled)
	s.Die()
	s.Spill(dir)
	st, _ := s.Follow("pods", "Pod")
	st.Recall()
	nodes, _ := s.Follow("nodes", "Node")
	served := streamtest.Served(t, "Pod", "a", 28)
	etcd := &stream.FakeEtcd{Now: 30, Versions: []*kube.Object{served}}
	for _, of := range []*stream.Stream{st, nodes} {
		of.RollbackStream().ListWith(etcd.Lister)
		of.RollbackStream().Follow(func(string) {})
	}
	st.RollbackStream().Saw(served, false)
	rest, err := nodes.RollbackStream().Unaccounted(t.Context(), 20, 30, 100, false)
	require.NoError(t, err)
	require.Equal(t, []uint64{21, 29, 30}, rest)
}
