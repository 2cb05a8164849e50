package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

var _ cache.KeyListerGetter = (*Known)(nil)

func TestKnownObjectsAreFoldedFromTheRecord(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	want := make(map[string]*object)
	rv := 0
	next := func(i, day int) Item {
		rv++
		key := fmt.Sprint("pod-", i)
		if want[key] == nil {
			want[key] = &object{uid: "x"}
			want[key] = made(t, fmt.Sprint("ns-", i%3), key, newUID(), fmt.Sprint(rv), `0`)
			return watched(pods, delta.Added, want[key])
		}
		o := want[key]
		want[key] = made(t, o.namespace, key, string(o.uid), fmt.Sprint(rv), fmt.Sprintf(`{"day":%d,"rv":%d}`, day, rv))
		return watched(pods, delta.Updated, want[key])
	}
	// On some days some objects change. On other days none changes, or some are born. There are more objects than one
	// query requests.
	for day := range 5 {
		var items []Item
		for i := range loadChunk + 100*day {
			if i%(day+1) == 0 && day != 2 {
				items = append(items, next(i, day), next(i, day))
			}
		}
		r.commit(items...)
		r.now = r.now.AddDate(0, 0, 1)
	}
	dead := want["pod-7"]
	delete(want, "pod-7")
	r.commit(watched(pods, delta.Deleted, made(t, dead.namespace, dead.name, string(dead.uid), fmt.Sprint(rv+1), `1`)))

	r.reopen()
	pods = r.pods()
	require.Equal(t, len(want), pods.Known().Len())
	require.Len(t, pods.Known().ListKeys(), len(want))
	for _, o := range want {
		value, exists, err := pods.Known().GetByKey(joinKey(o.namespace, o.name))
		require.NoError(t, err)
		require.True(t, exists)
		known := value.(KnownObject)
		require.Equal(t, []string{o.namespace, o.name, string(o.uid), o.rv}, []string{known.GetNamespace(), known.GetName(), string(known.GetUID()), known.GetResourceVersion()})
		require.Equal(t, string(o.doc), string(known.Doc()))
	}
	_, exists, err := pods.Known().GetByKey("ns-1/none")
	require.NoError(t, err)
	require.False(t, exists)
}

func TestARecordThatDoesNotFoldIsReportedAndTheNextVersionIsWhole(t *testing.T) {
	for name, damage := range map[string]string{
		"the digest differs":   `UPDATE kuberewind.deltas_data SET digest = '\x00' WHERE seq = 2`,
		"the patch differs":    `UPDATE kuberewind.deltas_data SET patch = '[{"op":"remove","path":"/nowhere"}]' WHERE seq = 2`,
		"the rows are missing": `DELETE FROM kuberewind.deltas_data`,
	} {
		t.Run(name, func(t *testing.T) {
			var reported []Mismatch
			r := record(t, newDatabase(t), func(c *Config) { c.Hooks.Unfolded = func(m Mismatch) { reported = append(reported, m) } })
			pods := r.pods()
			uid := newUID()
			r.commit(replacedBy(pods, delta.CauseFirstList, "1"), watched(pods, delta.Added, made(t, "a", "x", uid, "11", `1`)), watched(pods, delta.Updated, made(t, "a", "x", uid, "12", `2`)))
			r.db.exec(t, damage)
			r.reopen()
			pods = r.pods()
			require.Len(t, reported, 1)
			require.Equal(t, "a/x", reported[0].Key)
			value, exists, _ := pods.Known().GetByKey("a/x")
			require.True(t, exists)
			require.Zero(t, value.(KnownObject).Digest())
			require.Nil(t, value.(KnownObject).Doc())
			require.Equal(t, 1, r.kept(watched(pods, delta.Updated, made(t, "a", "x", uid, "13", `3`))).Keyframes)
			require.Equal(t, "1 f t", one[string](t, r.db, `SELECT format('%s %s %s', object_id, patch IS NOT NULL, object IS NOT NULL) FROM kuberewind.deltas_data WHERE seq = 3`))
			r.reopen()
			r.pods()
			require.Len(t, reported, 1, "it folds again")
		})
	}
}

func TestLoadingReadsOnePartitionAtATime(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	for day := range 4 {
		r.commit(watched(pods, delta.Added, made(t, "a", fmt.Sprint("x", day), newUID(), fmt.Sprint(day+1), `1`)))
		r.now = r.now.AddDate(0, 0, 1)
	}
	plan := all[string](t, r.db, `EXPLAIN `+foldQuery, r.cluster(), []int64{1, 2}, noon.Add(-time.Hour), noon.Add(time.Hour))
	var scans int
	for _, line := range plan {
		if containsAny(line, "deltas_p2026") {
			scans++
			require.Contains(t, line, "Index", line)
		}
	}
	require.Equal(t, 2, scans, "%v", plan)
}
