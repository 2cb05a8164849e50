package rollback

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestARollbackIsFoundThoughTheNewHistoryHasPassedTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 60, versions: []*kube.Object{servedAs("kept", "1", 20), servedAs("lost", "2", 50), servedAs("new", "3", 55), servedAs("new", "3", 70)}}
		c, notified := followed(all, "configmaps", etcd, 50, servedAs("kept", "1", 20))
		time.Sleep(time.Second)
		c.Saw(servedAs("lost", "2", 50), false)
		require.NoError(t, all.Probe(t.Context()))
		require.Empty(t, *notified, "etcd holds the served version")

		time.Sleep(time.Second)
		c.Saw(servedAs("lost", "2", 52), false)
		// Put back to 40, etcd has reached 80 by now. The stream is served the new history from there.
		etcd.now, etcd.versions = 80, []*kube.Object{servedAs("kept", "1", 20), servedAs("new", "3", 45), servedAs("new", "3", 70)}
		c.Saw(servedAs("new", "3", 70), false)
		c.Reached("70")
		etcd.fails = errors.New("restarting")
		require.Error(t, all.Probe(t.Context()))
		require.Empty(t, *notified)
		etcd.fails = nil
		finds(t, all.Probe, notified, 1)
		require.Contains(t, (*notified)[0], "ns/lost was served with resource version 50", "the newest version before a pause")
	})
}

// For ten minutes, the server answers no lists, while its watches go on. Etcd, put back, lacks ten seconds of that.
func TestPendingSamplesAreBoundedAndSpreadOverAllThatWasServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 20_000, fails: errDown}
		all, c, notified := alone(etcd)
		for i := range 12_000 {
			etcd.serves(c, servedAs("x"+strconv.Itoa(i), "1", 100+i), i < 400 || i >= 800)
			time.Sleep(probeEvery / 200)
			if i%200 == 199 {
				require.Error(t, all.lookBack(t.Context()))
			}
		}
		require.LessOrEqual(t, len(c.samples.pending.kept), keptPending)
		require.Equal(t, uint64(100), c.samples.pending.kept[0].revision)
		etcd.fails = nil
		finds(t, all.lookBack, notified, 1)
	})
}

// An error is no answer if the server has no etcd, or has not read yet who may do what.
func TestARefusedVersionIsCheckedAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"without etcd":        &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "rpc error: code = Unavailable"}},
		"without rights":      apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("RBAC: not synced")),
		"without definitions": apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				etcd := &archive{now: 60}
				all, c, notified := alone(etcd)
				c.Saw(servedAs("lost", "2", 52), false)
				c.Reached("60")
				etcd.fails = refusal
				require.Error(t, all.Probe(t.Context()))
				etcd.fails, etcd.now = nil, 80
				etcd.serves(c, servedAs("new", "3", 70), true)
				c.Reached("70")
				finds(t, all.Probe, notified, 1)
			})
		})
	}
}

// A server that answers slowly does not prevent the check of the newest version.
func TestASlowServerIsAskedForAsLongAsAProbeMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 1000}
		all, c, notified := alone(etcd)
		for i := range KeptSamples {
			etcd.serves(c, servedAs("x"+strconv.Itoa(i), "1", 100+i), i != KeptSamples-2)
		}
		slow := func() {}
		slow = func() {
			time.Sleep(maxAnswerTime / 10)
			etcd.meanwhile = slow
		}
		etcd.meanwhile = slow
		for range 2 {
			began := time.Now()
			require.NoError(t, all.lookBack(t.Context()))
			require.LessOrEqual(t, time.Since(began), maxAnswerTime+maxAnswerTime/10)
			require.Empty(t, *notified)
		}
		require.NoError(t, all.lookBack(t.Context()))
		require.Len(t, *notified, 1, "the last but one has its turn")
	})
}

// Among thousands of versions between two probes, etcd, put back, lacks two.
func TestAHistoryThatWasServedForAMomentIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 5000}
		all, c, notified := alone(etcd)
		neighbour, _ := followed(all, "secrets", etcd, 50)
		join(c, neighbour)
		for i := range 3000 {
			etcd.serves([]*Stream{c, neighbour}[i%2], servedAs("x"+strconv.Itoa(i), "1", 60+i), i != 1998 && i != 1999)
			if i == 1999 {
				time.Sleep(servingPause)
			}
			time.Sleep(2 * time.Millisecond)
		}
		finds(t, all.lookBack, notified, 1)
		require.Contains(t, (*notified)[0], "resource version 2059")
	})
}

// After a process stood still, it is served at once all that was written meanwhile.
func TestAHistoryThatWasServedAllAtOnceIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 400}
		all, c, notified := alone(etcd)
		for i := range 300 {
			etcd.serves(c, servedAs("x"+strconv.Itoa(i), "1", 60+i), i < 100 || i >= 120) // the versions in between are lost
		}
		finds(t, all.lookBack, notified, 1)
	})
}

// The number of versions of the old history does not affect the samples of the next.
func TestSamplesAfterARollbackBeginWithTheNextVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 2000}
		all, c, notified := alone(etcd)
		for i := range 1000 {
			c.Saw(servedAs("lost", "1", 60+i), false)
		}
		// No sample shows the first rollback.
		require.NoError(t, c.rollBack(t.Context(), evidence{"proof", servedAsVersion("lost", "1", 1059), 1059, true, time.Time{}, 0}))
		require.Len(t, *notified, 1)
		c.Listing("history_reversed")
		c.Listed("")
		c.Reached("2000")
		c.Saw(servedAs("lost again", "2", 2001), false)
		etcd.now = 3000
		finds(t, all.lookBack, notified, 2)
	})
}

// The probe may run just before the new history passes the served version.
func TestARollbackIsFoundWhileEtcdIsBehindTheServedVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 60}
		all, c, notified := alone(etcd)
		time.Sleep(time.Second)
		c.Saw(servedAs("lost", "2", 52), false)
		etcd.now = 51
		require.NoError(t, all.lookBack(t.Context()))
		require.Equal(t, []string{"configmaps ns/lost was served with resource version 52, which etcd has not reached"}, *notified)
	})
}

// A recorder was served the lost versions, and ended before it checked them. By now all living objects are of the
// new history.
func TestTheLastVersionsOfARecorderAreCheckedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 80, versions: []*kube.Object{servedAs("kept", "1", 20), servedAs("new", "3", 45), servedAs("new", "3", 70)}}
		c, notified := followed(all, "configmaps", etcd, 70, servedAs("new", "3", 70))
		began := time.Now()
		c.Recall(Recalled{Position: "70", Unverified: []postgres.Version{
			{Namespace: "ns", Name: "kept", UID: "1", ResourceVersion: "20", Observed: began.Add(-20 * time.Second)},
			{Namespace: "ns", Name: "lost", UID: "2", ResourceVersion: "50", Observed: began.Add(-10 * time.Second)},
			{Namespace: "ns", Name: "new", UID: "3", ResourceVersion: "70", Observed: began.Add(-time.Second)},
		}})
		finds(t, all.Probe, notified, 1)
		require.Contains(t, (*notified)[0], "lost was served with resource version 50")
		require.NotNil(t, c.trust.cacheCheck, "the cache may have served that recorder")
	})
}

// The events have an etcd of their own, and both etcds are put back together. Neither says anything about the
// other.
func TestTwoEtcdsThatArePutBackTogetherAreBothFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		var notified [2]*[]string
		var etcds [2]*archive
		for i, name := range []string{"configmaps", "events"} {
			from := 1000 * i
			etcds[i] = &archive{now: from + 60}
			var c *Stream
			c, notified[i] = followed(all, name, etcds[i], from+50)
			time.Sleep(time.Second)
			c.Saw(servedAs("lost", "2", from+52), false)
			c.Reached(strconv.Itoa(from + 60))
		}
		for i, etcd := range etcds {
			now := servedAs("new", "3", 1000*i+90)
			etcd.now, etcd.versions = 1000*i+100, []*kube.Object{now}
			all.streams[i].Saw(now, false)
			all.streams[i].Reached(now.ResourceVersion)
		}
		for range 2 { // A finding about one etcd is no error of the other.
			_ = all.Probe(t.Context())
		}
		require.Len(t, *notified[0], 1)
		require.Len(t, *notified[1], 1)
		require.Contains(t, (*notified[0])[0], "configmaps ns/lost")
		require.Contains(t, (*notified[1])[0], "events ns/lost")
	})
}

// When the versions are first checked, the server does not answer for the resource.
func TestTheLastVersionsOfARecorderAreCheckedUntilThereIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 180}
		c, notified := followed(all, "configmaps", etcd, 170)
		var versions []postgres.Version
		for i := range 2 * KeptSamples {
			o := servedAs(strconv.Itoa(i), "1", 100+i)
			versions = append(versions, postgres.Version{Namespace: "ns", Name: o.Name, UID: "1", ResourceVersion: o.ResourceVersion, Observed: time.Now()})
			etcd.versions = append(etcd.versions, o)
		}
		etcd.versions = etcd.versions[:len(versions)-1] // the last version is lost
		c.Recall(Recalled{Unverified: versions})
		etcd.fails = apierrors.NewServiceUnavailable("starting")
		require.Error(t, all.lookBack(t.Context()))
		require.Empty(t, *notified)
		etcd.fails = nil
		finds(t, all.lookBack, notified, 1)
	})
}

func TestTheSamplesOfAProbeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 1000}
		var streams []*Stream
		for i := range 3 {
			c, _ := followed(all, strconv.Itoa(i), etcd, 1)
			streams = append(streams, c)
		}
		join(streams[0], streams[1])
		for i := range 100 {
			time.Sleep(probeEvery / 100)
			for _, c := range streams {
				c.Saw(servedAs("x", "1", i+1), false)
			}
		}
		taken := all.takeSamples()
		require.Len(t, taken, 2, "one for each etcd")
		for _, l := range taken {
			samples := l.samples
			require.LessOrEqual(t, len(samples), samplesPerProbe+1)
			require.GreaterOrEqual(t, len(samples), samplesPerProbe/2)
			samples = samples[1:] // without the newest version
			for i := range samples[1:] {
				require.LessOrEqual(t, samples[i+1].revision-samples[i].revision, uint64(16), "the samples are spread over all that was served")
			}
		}
		taken = all.takeSamples()
		require.Len(t, append(taken[0].samples, taken[1].samples...), 2, "only the newest version of each etcd")
	})
}

// During a pause, a stream of another resource is found to be in the same etcd.
func TestThePauseAndTheNewestVersionBelongToAnEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 5000}
		idle, _ := followed(all, "widgets", etcd, 50)
		busy, notified := followed(all, "secrets", etcd, 50)
		for i := range 1000 {
			etcd.serves(busy, servedAs("x"+strconv.Itoa(i), "1", 60+i), i < 998)
			time.Sleep(2 * time.Millisecond)
		}
		join(idle, busy)
		time.Sleep(servingPause)
		for i := range 1000 {
			etcd.serves(busy, servedAs("y"+strconv.Itoa(i), "2", 1100+i), true)
			time.Sleep(2 * time.Millisecond)
		}
		finds(t, all.lookBack, notified, 1)
	})
}

// It does not matter which of two streams joins the etcd of the other.
func TestTheNewestVersionOfStreamsThatShareAnEtcdIsChecked(t *testing.T) {
	for name, joined := range map[string]func(older, newer *Stream){
		"the newer joins": func(older, newer *Stream) { join(older, newer) },
		"the older joins": func(older, newer *Stream) { join(newer, older) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := New(Options{})
				etcd := &archive{now: 70}
				older, _ := followed(all, "widgets", etcd, 50)
				newer, notified := followed(all, "secrets", etcd, 50)
				etcd.serves(older, servedAs("kept", "1", 60), true)
				time.Sleep(servingPause)
				etcd.serves(newer, servedAs("lost", "2", 70), true)
				require.NoError(t, all.lookBack(t.Context()))
				joined(older, newer)
				older.Saw(servedAs("kept", "1", 60), false)
				require.Empty(t, slices.Concat(older.samples.beforePause.kept, newer.samples.beforePause.kept), "the other was served a version just now")
				finds(t, all.lookBack, notified, 0)
				etcd.now, etcd.versions = 100, etcd.versions[:1]
				finds(t, all.lookBack, notified, 1)
			})
		})
	}
}

// The old history had reached a higher revision than the new one has.
func TestTheNewestVersionIsNotOneOfAnOldHistory(t *testing.T) {
	for name, joined := range map[string]func(rolledBack, other *Stream){
		"the other joins":                    func(rolledBack, other *Stream) { join(rolledBack, other) },
		"the one that was rolled back joins": func(rolledBack, other *Stream) { join(other, rolledBack) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				etcd := &archive{now: 100}
				all, c, _ := alone(etcd)
				c.Saw(servedAs("lost", "1", 30_000), false)
				require.NoError(t, all.lookBack(t.Context()))
				c.listsAfterRollback()
				d, notified := followed(all, "secrets", etcd, 100)
				etcd.now = 120
				etcd.serves(d, servedAs("lost", "2", 120), true)
				require.NoError(t, all.lookBack(t.Context()))
				joined(c, d)
				finds(t, all.lookBack, notified, 0)
				etcd.now, etcd.versions = 200, nil
				finds(t, all.lookBack, notified, 1)
			})
		})
	}
}

// While a sample of the old history is checked, a list takes its stream into another history.
func TestASampleOfAnOldHistoryDoesNotEndTheCheckOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 100}
		all, c, _ := alone(etcd)
		d, notified := followed(all, "secrets", etcd, 50)
		join(c, d)
		c.Saw(servedAs("left", "1", 52), false)
		d.Saw(servedAs("lost", "2", 53), false)
		etcd.serves(d, servedAs("new", "3", 70), true)
		etcd.meanwhile = func() { // the newest version
			etcd.meanwhile = c.listsAfterRollback
		}
		finds(t, all.lookBack, notified, 1)
		require.Contains(t, (*notified)[0], "ns/lost")
	})
}

func TestASampleOfAnOldHistoryDoesNotStayPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 100}
		all, c, _ := alone(etcd)
		c.Saw(servedAs("older", "1", 52), false)
		c.Saw(servedAs("newer", "1", 53), false)
		etcd.meanwhile = func() {
			c.listsAfterRollback()
			etcd.fails = errDown
		}
		require.Error(t, all.lookBack(t.Context()))
		require.Empty(t, slices.Concat(c.samples.pending.kept, c.samples.beforePause.kept))
	})
}

// The server refuses one stream's lists for minutes, while its watch goes on.
func TestASampleWithoutAnAnswerKeepsNoOtherFromItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 5000}
		refused, _ := followed(all, "widgets", &archive{fails: errDown}, 50)
		c, notified := followed(all, "secrets", etcd, 50)
		join(c, refused)
		for i := range 4 * samplesPerProbe {
			by := refused
			if i == 2*samplesPerProbe+1 {
				by = c
			}
			by.Saw(servedAs("x"+strconv.Itoa(i), "1", 100+i), false)
			time.Sleep(servingPause)
		}
		for range 4 {
			_ = all.lookBack(t.Context())
		}
		require.Len(t, *notified, 1)
	})
}

// Each answer is a refusal, and takes its time. More versions are served all the while. The other samples have
// their turn all the same.
func TestSlowRefusalsKeepNoOtherFromItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		slow := &archive{fails: apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("no"))}
		var wait func()
		wait = func() {
			time.Sleep(maxAnswerTime / 10)
			slow.meanwhile = wait
		}
		slow.meanwhile = wait
		refused, _ := followed(all, "widgets", slow, 50)
		etcd := &archive{now: 50_000}
		c, notified := followed(all, "secrets", etcd, 50)
		join(c, refused)
		n := 100
		serve := func(by *Stream, many int, kept bool) {
			for range many {
				etcd.serves(by, servedAs("x"+strconv.Itoa(n), "1", n), kept)
				n++
				time.Sleep(time.Millisecond)
			}
		}
		serve(refused, KeptSamples, false)
		serve(c, 1, false)
		for range 20 {
			serve(c, 2, true)
			serve(refused, KeptSamples, false)
			serve(c, 1, true)
			_ = all.lookBack(t.Context())
		}
		require.Len(t, *notified, 1)
	})
}
