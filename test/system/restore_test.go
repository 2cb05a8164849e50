package system_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// restored is a cluster whose etcd is put back to what it was before some writes.
type restored struct {
	*world
	*act
	saved    *controlplane.SavedData
	recorder *recordertest.Process
	lost     string    // resource version of the last write that is put back
	before   time.Time // when that was seen
}

const configMapsNow = `SELECT name || '@' || (object -> 'metadata' ->> 'resourceVersion') 
	FROM kuberewind.snapshot_at('', $1, '', 'configmaps', 'default') ORDER BY name`

// beforeRestore records a cluster up to where it is about to be put back.
func beforeRestore(t *testing.T) *restored {
	t.Helper()
	w, recorder := recordedLent(t)
	r := &restored{world: w, act: w.act(t), recorder: recorder}
	ready := time.Now()
	eventually(t.Context(), t, "watches that are known to have been accepted", func() bool { return time.Since(ready) > 2*time.Second })
	r.create(configMaps, template(configMaps, "default", "kept"))
	r.create(configMaps, template(configMaps, "default", "gone"))
	var err error
	r.saved, err = w.plane.Etcd.SaveData()
	require.NoError(t, err)
	r.merge(configMaps, "kept", `{"data":{"later":"yes"}}`)
	r.delete(configMaps, "gone")
	r.lost = r.create(configMaps, template(configMaps, "default", "lost")).GetResourceVersion()
	w.awaitLines(t, []string{r.lost}, `SELECT resource_version FROM kuberewind.deltas WHERE name = 'lost'`)
	require.NoError(t, w.db.QueryRow(t.Context(), `SELECT max(observed_at) FROM kuberewind.deltas WHERE name = 'lost'`).Scan(&r.before))
	return r
}

// served is etcd's content for the question of configMapsNow.
func (r *restored) served(t *testing.T) (found []string) {
	t.Helper()
	for _, name := range []string{"gone", "hidden", "kept", "lost", "new"} {
		if o, err := r.in(configMaps).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			found = append(found, name+"@"+o.GetResourceVersion())
		}
	}
	return found
}

// awaitTruth waits until the record says what the API server does, and every stream is complete again.
func (r *restored) awaitTruth(t *testing.T) {
	t.Helper()
	want := r.served(t)
	require.NotEmpty(t, want)
	eventually(t.Context(), t, fmt.Sprintf("%q on record", want), func() bool {
		return slices.Equal(want, r.lines(t, configMapsNow, "now")) && len(r.open(t)) == 0
	})
	causes := r.lines(t, `SELECT DISTINCT cause || ' ' || outcome FROM kuberewind.gaps WHERE cause NOT IN ('first_list', 'unreachable')`)
	slices.Sort(causes)
	require.Subset(t, []string{"history_reversed equal", "history_reversed relisted"}, causes)
	require.NotEmpty(t, causes)
}

// awaitAll waits until every stream knows: one etcd keeps them all.
func (r *restored) awaitAll(t *testing.T) {
	t.Helper()
	eventually(t.Context(), t, "every stream in another generation", func() bool {
		return len(r.lines(t, `SELECT s.resource FROM kuberewind.streams s WHERE NOT EXISTS (
			SELECT FROM kuberewind.gaps g WHERE g.resource = s.resource AND g.api_group = s.api_group AND g.cause = 'history_reversed')`)) == 0
	})
}

func (r *restored) open(t *testing.T) []string {
	t.Helper()
	return r.lines(t, `SELECT resource || ' ' || cause FROM kuberewind.gaps WHERE open`)
}

// requireGenerations: a question for an earlier time still finds the rolled-back objects. Their numbers now mean the new ones.
func (r *restored) requireGenerations(t *testing.T) {
	t.Helper()
	at := history.At(r.before).String()
	was := r.lines(t, configMapsNow, at)
	require.Contains(t, was, "lost@"+r.lost)
	require.Len(t, was, 2)
	made := r.create(configMaps, template(configMaps, "default", "new")).GetResourceVersion()
	r.awaitTruth(t)
	require.Contains(t, r.lines(t, configMapsNow, "rv:"+made), "new@"+made)
	for _, now := range r.lines(t, configMapsNow, "rv:"+made) {
		require.NotEqual(t, "lost@"+r.lost, now)
	}
}

func TestAnEtcdThatIsRestoredWithItsAPIServerIsAnotherGeneration(t *testing.T) {
	t.Parallel()
	r := beforeRestore(t)
	const undone = 100
	for i := range undone {
		r.create(secrets, template(secrets, "default", fmt.Sprintf("undone-%d", i)))
	}
	require.NoError(t, r.plane.APIServer.Stop(t.Context()))
	require.NoError(t, r.plane.Etcd.RestoreData(t.Context(), r.saved))
	require.NoError(t, r.plane.APIServer.Start(t.Context()))
	r.awaitAll(t)
	r.awaitTruth(t)
	r.requireGenerations(t)
	// A watch of definitions is silent until the new history has come to where the old one was.
	r.create(crds, widgetCRD())
	r.createAgain(widgets, "after")
	r.awaitLines(t, []string{"after"}, `SELECT DISTINCT name FROM kuberewind.deltas WHERE resource = 'widgets'`)
	r.recorder.Terminate(t)
}

func TestAnEtcdThatIsRestoredUnderItsAPIServerIsNotTrustedBeforeThatHasNoticed(t *testing.T) {
	t.Parallel()
	r := beforeRestore(t)
	require.NoError(t, r.plane.Etcd.RestoreData(t.Context(), r.saved))
	r.awaitAll(t)
	eventually(t.Context(), t, "the rollback on record", func() bool {
		return slices.Contains(r.open(t), "configmaps history_reversed")
	})
	// The API server lists the objects in its cache.
	list, err := r.in(configMaps).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetName() == "lost" }), "the API server tells the truth: this shows nothing")
	r.recorder.Await(t, "is not trusted")
	require.Contains(t, r.open(t), "configmaps history_reversed")
	require.NoError(t, r.plane.APIServer.Restart(t.Context()))
	r.awaitAll(t)
	r.awaitTruth(t)
	r.requireGenerations(t)
	r.recorder.Terminate(t)
}

// A watch cache built before the restore follows the new history from the revision at which it passes the old one. Its newest
// objects are right, but it never learns the earlier writes of the new history.
func TestAnEtcdThatOvertakesItselfUnderItsAPIServerIsNotTrusted(t *testing.T) {
	t.Parallel()
	r := beforeRestore(t)
	// The first of a stream is one of the versions that are checked again.
	r.lost = r.create(secrets, template(secrets, "default", "undone")).GetResourceVersion()
	r.awaitLines(t, []string{r.lost}, `SELECT resource_version FROM kuberewind.deltas WHERE name = 'undone'`)
	require.NoError(t, r.plane.Etcd.RestoreData(t.Context(), r.saved))
	restored := time.Now() // Until it was stopped, etcd may have served more of the old history: a renewed Lease.
	r.createAgain(configMaps, "hidden")
	last, err := strconv.ParseInt(r.lost, 10, 64)
	require.NoError(t, err)
	r.overtake(t, last)
	// Nothing of what shows that there was another history is served any more.
	r.merge(configMaps, "kept", `{"data":{"later":"again"}}`)
	r.createAgain(configMaps, "lost")
	r.createAgain(secrets, "undone")
	r.recorder.Await(t, "from before the rollback: restart the API server")
	list, err := r.in(configMaps).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetName() == "hidden" }), "the API server tells the truth: this shows nothing")
	eventually(t.Context(), t, "the rollback on record", func() bool { return slices.Contains(r.open(t), "configmaps history_reversed") })
	// Nor is it by a recorder that has not seen anything of that itself.
	r.recorder.Kill(t)
	r.recorder = r.record(t)
	r.recorder.Await(t, "from before the rollback: restart the API server")
	require.Contains(t, r.open(t), "configmaps history_reversed")
	r.recorder.Kill(t)
	require.NoError(t, r.plane.APIServer.Restart(t.Context()))
	r.recorder = r.record(t)
	r.awaitAll(t)
	r.awaitTruth(t)
	// Rows that were recorded between the restore and its discovery are not complete.
	require.Equal(t, []string{"true"}, r.lines(t, `SELECT DISTINCT (from_at <= $1)::text FROM kuberewind.gaps
		WHERE cause = 'history_reversed' AND resource = 'configmaps'`, restored))
	r.recorder.Terminate(t)
}

// overtake writes until etcd has passed a revision.
func (r *restored) overtake(t *testing.T, last int64) {
	t.Helper()
	eventually(t.Context(), t, "etcd to overtake the record", func() bool {
		r.createAgain(secrets, "overtaking-"+strconv.FormatInt(time.Now().UnixNano(), 36))
		now, err := r.plane.Etcd.Revision(t.Context())
		return err == nil && now > last+10
	})
}

func TestAnEtcdThatIsRestoredAndOvertakesItselfWhileNoRecorderRunsIsAnotherGeneration(t *testing.T) {
	t.Parallel()
	r := beforeRestore(t)
	r.recorder.Terminate(t)
	last, err := strconv.ParseInt(cmp.Or(r.lines(t, `SELECT max(position::bigint)::text FROM kuberewind.streams`)...), 10, 64)
	require.NoError(t, err)
	require.NoError(t, r.plane.APIServer.Stop(t.Context()))
	require.NoError(t, r.plane.Etcd.RestoreData(t.Context(), r.saved))
	require.NoError(t, r.plane.APIServer.Start(t.Context()))
	r.overtake(t, last)
	r.recorder = r.record(t)
	// Nothing distinguishes the cache of a resource whose new history has passed the old one from a cache that was not restarted.
	r.recorder.Await(t, "from before the rollback: restart the API server")
	require.NoError(t, r.plane.APIServer.Restart(t.Context()))
	r.awaitAll(t)
	r.awaitTruth(t)
	r.requireGenerations(t)
	r.recorder.Terminate(t)
}

// The recorder was killed when all streams except one had a gap for the restore. For that stream, nothing in etcd shows that
// there was another history.
func TestTheNextRecorderOpensTheGapOfARestoreThatAKilledOneLeftOut(t *testing.T) {
	t.Parallel()
	r := beforeRestore(t)
	last, err := strconv.ParseInt(cmp.Or(r.lines(t, `SELECT max(position::bigint)::text FROM kuberewind.streams`)...), 10, 64)
	require.NoError(t, err)
	require.NoError(t, r.plane.APIServer.Stop(t.Context()))
	require.NoError(t, r.plane.Etcd.RestoreData(t.Context(), r.saved))
	require.NoError(t, r.plane.APIServer.Start(t.Context()))
	r.awaitAll(t)
	r.awaitTruth(t)
	r.overtake(t, last)
	r.recorder.Kill(t)
	const reversed = `SELECT count(*)::text FROM kuberewind.gaps WHERE cause = 'history_reversed' AND resource = 'services'`
	_, err = r.db.Exec(t.Context(), `DELETE FROM kuberewind.gaps_data g USING kuberewind.streams s
		WHERE s.cluster = g.cluster AND s.stream = g.stream AND s.resource = 'services' AND g.cause = 'history_reversed'`)
	require.NoError(t, err)
	require.Equal(t, []string{"0"}, r.lines(t, reversed))
	r.recorder = r.record(t)
	r.recorder.AwaitReady(t)
	r.awaitAll(t)
	require.Equal(t, []string{"1"}, r.lines(t, reversed))
	r.recorder.Terminate(t)
}

func TestOtherRulesOfRedactionAreNoRestore(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	a := w.act(t)
	create := func(name string) {
		o := template(configMaps, "default", name)
		o.SetAnnotations(map[string]string{"leaked": "hunter2"})
		made := a.create(configMaps, o).GetResourceVersion()
		w.awaitLines(t, []string{made}, `SELECT resource_version FROM kuberewind.deltas WHERE name = $1`, name)
	}
	create("plain")
	recorder.Terminate(t)
	w.extra = []string{"--redact", "configmaps:/metadata/annotations/leaked"}
	recorder = w.recordReady(t)
	create("redacted") // after whatever was said when the watch was opened
	require.Empty(t, w.lines(t, `SELECT resource || ' ' || detail FROM kuberewind.gaps WHERE cause = 'history_reversed'`))
	recorder.Terminate(t)
}

func TestAnotherClusterAtTheSameAddressIsNotMixedIntoTheRecord(t *testing.T) {
	t.Parallel()
	r := beforeRestore(t)
	empty, err := r.plane.Etcd.NoData()
	require.NoError(t, err)
	require.NoError(t, r.plane.APIServer.Stop(t.Context()))
	require.NoError(t, r.plane.Etcd.RestoreData(t.Context(), empty))
	require.NoError(t, r.plane.APIServer.Start(t.Context()))
	require.Equal(t, 3, r.recorder.AwaitEnd(t), r.recorder.Log())
	require.Contains(t, r.recorder.Log(), "serves another cluster")
	uids := r.lines(t, `SELECT DISTINCT uid FROM kuberewind.deltas WHERE resource = 'namespaces' AND name = 'kube-system'`)
	require.Len(t, uids, 1, "one cluster's kube-system")

	r.extra = []string{"--cluster-name", "rebuilt"}
	successor := r.record(t)
	successor.AwaitReady(t)
	// A recorder is ready as soon as its streams follow the server, and may commit what they listed later.
	r.awaitLines(t, []string{"kube-apiserver", "rebuilt"}, `SELECT DISTINCT cluster FROM kuberewind.deltas ORDER BY cluster`)
	successor.Terminate(t)
}
