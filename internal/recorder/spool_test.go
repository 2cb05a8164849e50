package recorder

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A replica was promoted that had not got the last commits. What they held has left the queue, and the spool begins behind it.
func TestASpoolIsNotUsedIfTheDatabaseHasLostCommits(t *testing.T) {
	s, dir, pods := listed(t)
	one := func(sql string) (text string) {
		t.Helper()
		require.NoError(t, s.conn.QueryRow(t.Context(), sql).Scan(&text))
		return text
	}
	before := one(`SELECT format('seq = %s, batch = %s, digest = %L, observed_at = %L, spool = %L, spool_next = %s', seq, batch, digest, observed_at, spool, spool_next) FROM kuberewind.heads`)
	require.NoError(t, pods.Update(served(t, "Pod", "a", 21)))
	s.pump()
	for rv := 22; rv < 28; rv++ {
		require.NoError(t, pods.Update(served(t, "Pod", "a", rv)))
	}
	require.Positive(t, s.queue.Stats().Spooled)
	for _, sql := range []string{
		`DELETE FROM kuberewind.deltas_data WHERE seq = (SELECT seq FROM kuberewind.heads)`,
		`DELETE FROM kuberewind.batches WHERE batch = (SELECT batch FROM kuberewind.heads)`,
		`UPDATE kuberewind.heads SET ` + before,
	} {
		_, err := s.conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	s.die()
	s.spill(dir)
	require.NotEmpty(t, s.recorder.spool.Aside())
	require.Zero(t, s.queue.Stats().Spooled)
}

// A clock may be ahead of the wall clock by a minute. The recorder may be back before the wall clock has caught up.
func TestARecorderBeginsAfterWhatItFindsInTheSpoolThoughItsClockIsBehind(t *testing.T) {
	s := newSwept(t)
	dir := t.TempDir()
	s.spill(dir)
	_, pods := s.follow("pods", "Pod")
	require.NoError(t, pods.Replace([]any{served(t, "Pod", "a", 11)}, "11"))
	s.pump()
	s.at = s.at.Add(40 * time.Second)
	for rv := 12; rv < 16; rv++ {
		require.NoError(t, pods.Update(served(t, "Pod", "a", rv)))
	}
	seen := s.at
	s.at = s.at.Add(-30 * time.Second)
	s.die()
	s.spill(dir)
	info := s.sink.Info()
	require.True(t, info.Started.After(seen))
	require.Equal(t, info.Started, s.recorder.clock.Now())
	require.NoError(t, s.sink.RecordPause(t.Context(), s.seen))
	st, _ := s.follow("pods", "Pod")
	require.Equal(t, info.Started, st.since)
	require.True(t, st.occurrence.catchingUp, "what is caught up on happened meanwhile")
	entries, err := s.queue.Next(t.Context(), 1, 0, 0)
	require.NoError(t, err)
	require.True(t, entries[0].Observed.Before(st.since), "a recorder before this one saw it live")
	var from, to time.Time
	require.NoError(t, s.conn.QueryRow(t.Context(), `SELECT from_at, to_at FROM kuberewind.pauses`).Scan(&from, &to))
	require.True(t, seen.Equal(from))
	require.True(t, info.Started.Equal(to))
}

func TestAPauseLastsForAsLongAsTheSpoolIsRead(t *testing.T) {
	s := newSwept(t)
	dir := t.TempDir()
	s.spill(dir)
	_, pods := s.follow("pods", "Pod")
	require.NoError(t, pods.Replace([]any{served(t, "Pod", "a", 11)}, "11"))
	s.pump()
	for rv := 12; rv < 16; rv++ {
		require.NoError(t, pods.Update(served(t, "Pod", "a", rv)))
	}
	s.die()
	s.at = s.at.Add(3 * time.Minute)
	s.spill(dir)
	info := s.sink.Info()
	require.True(t, info.Started.After(s.at))
	st, _ := s.follow("pods", "Pod")
	require.Equal(t, info.Started, st.since)
	require.Equal(t, info.Started, st.occurrence.to)
}

// listed is a recorder with a spool in a folder, and Pods with a list on record up to 20. The list has one Pod, of version 11.
func listed(t *testing.T) (s *swept, dir string, pods *deltafifo.FIFO) {
	t.Helper()
	s, dir = newSwept(t), t.TempDir()
	s.spill(dir)
	_, pods = s.follow("pods", "Pod")
	require.NoError(t, pods.Replace([]any{served(t, "Pod", "a", 11)}, "20"))
	s.pump()
	return s, dir, pods
}

// What interrupted the stream is on record, and the list that follows it is cut by the end of the process.
func TestAListThatTheSpoolHoldsAPartOfKeepsTheCauseThatIsOnRecord(t *testing.T) {
	s, dir, pods := listed(t)
	require.NoError(t, pods.Interrupted("expired", "why"))
	s.pump()
	require.NoError(t, pods.BeginReplace("expired", "why", "20"))
	page := []any{}
	for rv := 30; rv < 36; rv++ {
		page = append(page, served(t, "Pod", fmt.Sprint("b", rv), rv))
	}
	require.NoError(t, pods.ReplacePage(page, "40"))
	require.Positive(t, s.queue.Stats().Spooled)
	s.die()
	s.spill(dir)
	st, _ := s.follow("pods", "Pod")
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: "expired"}}, st.next(nil))
}

// The database was away when etcd was put back, and the recorder has ended before it was there again.
func TestAReversalThatTheSpoolHoldsTheEndOfIsNotFoundASecondTime(t *testing.T) {
	for name, recorded := range map[string]bool{"its beginning is on record": true, "its beginning is in the spool, too": false} {
		t.Run(name, func(t *testing.T) {
			s, dir, pods := listed(t)
			require.NoError(t, pods.Interrupted(delta.CauseHistoryReversed, "why"))
			if recorded {
				s.pump()
			}
			require.NoError(t, pods.BeginReplace(delta.CauseHistoryReversed, "why", "20"))
			page := []any{}
			for rv := 3; rv < 9; rv++ {
				page = append(page, served(t, "Pod", fmt.Sprint("b", rv), rv))
			}
			require.NoError(t, pods.ReplacePage(page, "15"))
			require.NoError(t, pods.EndReplace("15"))
			require.Positive(t, s.queue.Stats().Spooled)
			s.die()
			s.spill(dir)

			st, _ := s.follow("pods", "Pod")
			st.etcd.Recall(rollback.Recalled{
				Reversals:  []postgres.Reversal{{Stream: 7, Proof: "another had found it"}},
				Unverified: []postgres.Version{{Namespace: "default", Name: "a", UID: "a", ResourceVersion: "11"}},
			})
			require.Equal(t, lifecycle.Decision{Do: lifecycle.Resume, At: "15", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}, st.next(nil))
			st.recall(nil)
			told := []string{}
			st.etcd.ListWith((&etcd{now: 15}).lister)
			st.etcd.Follow(func(proof string) { told = append(told, proof) })
			proof, err := st.etcd.Reversed(t.Context(), "15")
			require.NoError(t, err)
			require.Empty(t, proof)
			require.NoError(t, s.recorder.etcds.Probe(t.Context()))
			require.Empty(t, told)
		})
	}
}

// A rollback was found while the database was away. The spool has the gap of a stream of which it has nothing else.
func TestAStreamThatTheSpoolOnlyNamesBesideAnotherIsListed(t *testing.T) {
	s, dir, pods := listed(t)
	require.NoError(t, pods.Add(served(t, "Pod", "b", 21)))
	nodes, _ := s.follow("nodes", "Node")
	mine, _ := s.follow("pods", "Pod")
	require.NoError(t, s.queue.InterruptTogether(t.Context(), delta.CauseHistoryReversed, "why", []deltafifo.Late{{Stream: mine}, {Stream: nodes}}))
	for rv := 22; s.queue.Stats().Spooled == 0; rv++ {
		require.NoError(t, pods.Add(served(t, "Pod", fmt.Sprint("b", rv), rv)))
	}
	s.die()
	s.spill(dir)
	for _, name := range []string{"pods", "nodes"} {
		st, _ := s.follow(name, map[string]string{"pods": "Pod", "nodes": "Node"}[name])
		require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseHistoryReversed}}, st.next(nil), name)
	}
}

// The recorder has ended before it looked, and the new history has passed what is in the spool.
func TestWhatIsInTheSpoolIsLookedAtByTheNext(t *testing.T) {
	for name, test := range map[string]struct {
		lost  int // so many of the newest versions are of a history that is no more
		found bool
	}{"its newest version is undone": {1, true}, "some are": {4, true}, "nothing is": {0, false}} {
		t.Run(name, func(t *testing.T) {
			s, dir, pods := listed(t)
			const versions = 3 * rollback.KeptSamples
			etcd := &etcd{now: 500, versions: []*kube.Object{served(t, "Pod", "a", 11)}}
			for i := range versions {
				o := served(t, "Pod", fmt.Sprint("b", i), 21+i)
				require.NoError(t, pods.Add(o))
				if i < versions-test.lost {
					etcd.versions = append(etcd.versions, o)
				}
			}
			etcd.versions = append(etcd.versions, served(t, "Pod", fmt.Sprint("b", versions-1), 300))
			require.NoError(t, pods.Delete(served(t, "Pod", "a", 100)))
			require.Positive(t, s.queue.Stats().Spooled)
			s.die()
			s.spill(dir)

			st, _ := s.follow("pods", "Pod")
			st.recall(nil)
			told := []string{}
			st.etcd.ListWith(etcd.lister)
			st.etcd.Follow(func(proof string) { told = append(told, proof) })
			require.NoError(t, s.recorder.etcds.Probe(t.Context()))
			require.Equal(t, test.found, len(told) > 0, told)
			require.Less(t, etcd.asked.Load(), int64(2*rollback.KeptSamples))
		})
	}
}

// A list in the spool was made under the rules of the recorder that has put it there. What the present rules let in besides is
// in no list yet.
func TestAListInTheSpoolCountsForTheRulesThatItWasTakenInUnder(t *testing.T) {
	const batch = "pods?tier=batch"
	due, done := lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseConfiguration}}, lifecycle.Decision{Do: lifecycle.Resume, At: "40", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}
	for name, test := range map[string]struct {
		record       bool   // whether there was a list before
		before, rule string // of that list, and of the one in the spool
		now          string
		want         lifecycle.Decision
	}{
		"the rules are others by now":                       {true, batch, batch, "", due},
		"they are what they were before that list":          {true, "", batch, "", due},
		"they are others by now, and there was no list":     {false, "", batch, "", due},
		"that list is due to other rules, still in force":   {true, "", batch, batch, done},
		"nothing has changed, and there was no list before": {false, "", batch, batch, done},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwept(t)
			dir := t.TempDir()
			if test.record {
				s.leaveOut(test.before)
				_, pods := s.follow("pods", "Pod")
				require.NoError(t, pods.Replace([]any{served(t, "Pod", "a", 11)}, "20"))
				s.pump()
				s.die()
			}
			s.leaveOut(test.rule)
			s.spill(dir)
			_, pods := s.follow("pods", "Pod")
			page := []any{}
			for rv := 30; rv < 36; rv++ {
				page = append(page, served(t, "Pod", fmt.Sprint("b", rv), rv))
			}
			require.NoError(t, pods.Replace(page, "40"))
			require.Positive(t, s.queue.Stats().Spooled)
			s.die()
			s.leaveOut(test.now)
			s.spill(dir)

			st, _ := s.follow("pods", "Pod")
			require.Equal(t, test.want, st.next(nil))
			s.pump()
			require.Equal(t, test.want, st.next(nil), "who writes it does not matter")
			s.die()
			s.leaveOut(test.now)
			st, _ = s.follow("pods", "Pod")
			require.Equal(t, test.want, st.next(nil), "nor when")
		})
	}
}

// etcd has the versions of a few objects, in order.
type etcd struct {
	now      int
	versions []*kube.Object
	asked    atomic.Int64
}

func (e *etcd) lister(string) cache.ListerWithContext { return e }

// List implements cache.Lister.
func (e *etcd) List(options metav1.ListOptions) (runtime.Object, error) {
	return e.ListWithContext(context.Background(), options)
}

// ListWithContext answers lists by name at an exact revision, and says where etcd is.
func (e *etcd) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	e.asked.Add(1)
	if order, ok := delta.Compare(options.ResourceVersion, strconv.Itoa(e.now)); ok && order > 0 {
		ahead := apierrors.NewTimeoutError("Too large resource version", 0)
		ahead.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, ahead
	}
	at := cmp.Or(options.ResourceVersion, strconv.Itoa(e.now))
	list := &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: at}}
	for _, o := range e.versions {
		if order, ok := delta.Compare(o.ResourceVersion, at); ok && order <= 0 && options.FieldSelector == "metadata.name="+o.Name {
			list.Items = []*kube.Object{o}
		}
	}
	return list, nil
}
