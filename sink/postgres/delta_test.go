package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// kept encodes and commits items, and returns what Encode counted.
func (r *recording) kept(items ...Item) EncodeStats {
	r.t.Helper()
	b := r.encode(items...)
	stats := b.stats
	require.NoError(r.t, r.sink.Commit(context.Background(), b))
	return stats
}

func TestVersionsOnRecordAreSkipped(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	uid := newUID()
	v1, v2, v3 := made(t, "a", "x", uid, "11", `1`), made(t, "a", "x", uid, "12", `2`), made(t, "a", "x", uid, "13", `2`)
	stretch := []Item{watched(pods, delta.Added, v1), watched(pods, delta.Updated, v2), watched(pods, delta.Deleted, v3)}
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	require.Equal(t, 3, r.kept(append(stretch[:2:2], stretch...)...).Rows)
	again := r.encode(stretch...)
	require.Equal(t, 3, again.stats.Skipped)
	require.True(t, again.Empty())
	require.NoError(t, r.sink.Commit(t.Context(), again))
	require.Equal(t, int64(2), one[int64](t, r.db, `SELECT batch FROM kuberewind.heads WHERE cluster = $1`, r.cluster()), "a skipped version needs no commit")
	require.Equal(t, "12 13", r.position(pods))
	r.commit(bookmark(pods, "20"))
	require.Len(t, r.history(), 3)
	r.verify()
}

func TestResourceVersionsThatAreNotNumbersAreComparedForEqualityOnly(t *testing.T) {
	r := record(t, newDatabase(t))
	st := r.pods()
	r.commit(replacedBy(st, delta.CauseFirstList, "list"))
	uid := "not-a-uuid"
	b, a := made(t, "", "x", uid, "b", `1`), made(t, "", "x", uid, "a", `2`)
	require.Equal(t, 2, r.kept(watched(st, delta.Added, b), watched(st, delta.Updated, a)).Rows)
	require.Equal(t, 1, r.kept(watched(st, delta.Updated, a)).Skipped)
	r.reopen()
	st = r.pods()
	require.Equal(t, 1, r.kept(watched(st, delta.Updated, a)).Skipped)
	known, _, _ := st.Known().GetByKey("x")
	require.Equal(t, uid, string(known.(KnownObject).GetUID()))
	require.Equal(t, "a", known.(KnownObject).GetResourceVersion())
}

func TestVersionsAreNotLostIfResourceVersionsHaveNoCommonOrder(t *testing.T) {
	r := record(t, newDatabase(t))
	st := r.pods()
	r.commit(replacedBy(st, delta.CauseFirstList, "10"), watched(st, delta.Added, made(t, "", "x", newUID(), "100", `1`)))
	require.Equal(t, 1, r.kept(watched(st, delta.Added, made(t, "", "y", newUID(), "3", `1`))).Rows, "an aggregated API may count for each object")
	require.Equal(t, "100 100", r.position(st), "the position does not go back")
}

func TestObjectsWithoutUIDOrResourceVersionAreRecordedWhenTheyChange(t *testing.T) {
	r := record(t, newDatabase(t))
	st := r.pods()
	one, two := made(t, "", "x", "", "", `1`), made(t, "", "x", "", "", `2`)
	require.Equal(t, 2, r.kept(watched(st, delta.Added, one), watched(st, delta.Updated, one), watched(st, delta.Updated, two)).Rows)
	r.reopen()
	st = r.pods()
	require.Equal(t, 1, r.kept(watched(st, delta.Updated, two), watched(st, delta.Updated, one)).Rows)
	require.Equal(t, 1, r.kept(watched(st, delta.Deleted, one)).Rows)
	history := r.history()
	require.Len(t, history, 4)
}

func TestANewUIDUnderAKnownNameEndsTheOldLifeFirst(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	old, fresh := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "x", newUID(), "15", `2`)
	r.commit(watched(pods, delta.Added, old))
	r.commit(watched(pods, delta.Added, fresh))
	require.Equal(t, []string{"Added watch", "Deleted inferred", "Added watch"},
		all[string](t, r.db, `SELECT type || ' ' || source FROM kuberewind.deltas WHERE cluster = $1 ORDER BY seq`, r.cfg.ClusterName))
	require.Equal(t, []int64{1, 1, 3}, all[int64](t, r.db, `SELECT object_id FROM kuberewind.deltas WHERE cluster = $1 ORDER BY seq`, r.cfg.ClusterName))
	require.Equal(t, 1, r.kept(watched(pods, delta.Updated, old)).Skipped, "the old life does not begin again")
	require.Equal(t, old.doc, r.history()[1].Doc)
	r.verify()
}

func TestTheDeleteOfAnUnknownObjectIsALifeOfOneRow(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	x := made(t, "a", "x", newUID(), "11", `1`)
	require.Equal(t, 1, r.kept(watched(pods, delta.Deleted, x)).Rows)
	require.Equal(t, 1, r.kept(watched(pods, delta.Deleted, x)).Skipped)
	require.Equal(t, int64(1), one[int64](t, r.db, `SELECT seq FROM kuberewind.ends WHERE cluster = $1 AND object_id = 1`, r.cluster()))
	require.True(t, r.history()[0].HasObj)
	r.verify()
}

func TestAnObjectMissingFromAListIsAnInferredDelete(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	x := made(t, "a", "x", newUID(), "5", `1`)
	r.commit(listed(pods, delta.SourceList, x), replacedBy(pods, delta.CauseFirstList, "10"))
	stats := r.kept(gone(pods, x, "30"), gone(pods, x, "30"), replacedBy(pods, "expired", "30"))
	require.Equal(t, 1, stats.Rows)
	require.Equal(t, 1, stats.Skipped)
	last := r.history()[1]
	require.Equal(t, "30", last.RV)
	require.False(t, last.HasPatch)
	require.False(t, last.HasObj)
	r.verify()
}

func TestFirstVersionsSyncsEvery64thVersionAndEachDayAreKeyframes(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	uid := newUID()
	version := func(rv int) *object { return made(t, "a", "x", uid, fmt.Sprint(rv), fmt.Sprintf(`{"n":%d}`, rv)) }
	var items []Item
	for rv := 1; rv <= 130; rv++ {
		items = append(items, watched(pods, delta.Updated, version(rv)))
	}
	r.commit(items...)
	r.commit(listed(pods, delta.SourceRelist, version(131)))
	r.commit(watched(pods, delta.Updated, version(132)))
	r.now = r.now.Add(12 * time.Hour)
	r.commit(watched(pods, delta.Updated, version(133)), watched(pods, delta.Updated, version(134)))
	r.reopen()
	pods = r.pods()
	r.commit(watched(pods, delta.Updated, version(135)))
	require.Equal(t, []int64{1, 65, 129, 131, 133},
		all[int64](t, r.db, `SELECT seq FROM kuberewind.deltas_data WHERE cluster = $1 AND object IS NOT NULL ORDER BY seq`, r.cluster()))
	require.Equal(t, []int64{1}, all[int64](t, r.db, `SELECT seq FROM kuberewind.deltas_data WHERE cluster = $1 AND patch IS NULL`, r.cluster()))
	require.Equal(t, []string{"2026-03-10 1 132", "2026-03-11 133 135"},
		all[string](t, r.db, `SELECT format('%s %s %s', day, first_seq, last_seq) FROM kuberewind.days WHERE cluster = $1 ORDER BY day`, r.cluster()))
	require.Len(t, r.history(), 135)
	r.verify()
}

func TestAPatchLargerThanTheObjectIsStoredWithTheObject(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	uid := newUID()
	r.commit(watched(pods, delta.Added, made(t, "a", "x", uid, "1", `"`+strings.Repeat("long", 500)+`"`)))
	r.commit(watched(pods, delta.Updated, made(t, "a", "x", uid, "2", `"s"`)))
	last := r.history()[1]
	require.True(t, last.HasPatch)
	require.True(t, last.HasObj)
}

func TestTimeDoesNotGoBackWithSeq(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(watched(pods, delta.Added, made(t, "a", "x", newUID(), "1", `1`)))
	r.now = noon.Add(-time.Hour)
	r.commit(watched(pods, delta.Added, made(t, "a", "y", newUID(), "2", `1`)))
	r.reopen()
	pods = r.pods()
	r.commit(watched(pods, delta.Added, made(t, "a", "z", newUID(), "3", `1`)))
	for _, d := range r.history() {
		require.Equal(t, noon, d.Observed.UTC())
	}
	require.Equal(t, 0, one[int](t, r.db, `SELECT count(*) FROM kuberewind.pauses_data WHERE from_at > to_at`))
}

func TestOccurredIsTakenFromTheItemOrElseFromObserved(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	estimated := watched(pods, delta.Added, made(t, "a", "x", newUID(), "1", `1`))
	estimated.Occurred = noon.Add(-time.Hour)
	r.commit(estimated, watched(pods, delta.Added, made(t, "a", "y", newUID(), "2", `1`)))
	require.Equal(t, []time.Time{noon.Add(-time.Hour), noon}, utc(all[time.Time](t, r.db, `SELECT occurred_at FROM kuberewind.deltas_data WHERE cluster = $1 ORDER BY seq`, r.cluster())))
}

func utc(times []time.Time) []time.Time {
	for i := range times {
		times[i] = times[i].UTC()
	}
	return times
}

// hazards are contents that jsonb or text cannot hold, or that are easily damaged.
func hazards() map[string]string {
	deep := strings.Repeat(`[`, 3000) + strings.Repeat(`]`, 3000)
	return map[string]string{
		"NUL":                `{"a":"x\u0000y"}`,
		"lone surrogate":     `{"a":"\ud800","b":"\udc00x"}`,
		"surrogate pair":     `{"a":"\ud83d\ude00"}`,
		"invalid UTF-8":      "{\"a\":\"\xff\xfe\"}",
		"NUL in a key":       `{"\u0000":1,"\u0000a":2}`,
		"beyond 2^53":        `{"a":9007199254740993,"b":-123456789012345678901234567890.5}`,
		"beyond numeric":     `{"a":1e200000}`,
		"exponents":          `{"a":1e3,"b":1.50,"c":-0,"d":1e-7}`,
		"1.5 MiB":            `{"a":"` + noise(1536<<10) + `"}`,
		"deep":               `{"a":` + deep + `}`,
		"duplicate keys":     `{"a":1,"a":2}`,
		"empty key, / and ~": `{"":1,"a/b":2,"c~d":3,"e~1f":null}`,
		"explicit null":      `{"a":null}`,
		"control characters": `{"a":"\u0001\u001f\t\n\u007f"}`,
		"a backslash u text": `{"a":"\\u0000"}`,
	}
}

func TestAVersionWithoutAPatchIsStoredWholeAndReported(t *testing.T) {
	var told []Mismatch
	r := record(t, newDatabase(t), func(c *Config) { c.Hooks.Mismatch = func(m Mismatch) { told = append(told, m) } })
	pods := r.pods()
	uid := newUID()
	first := made(t, "a", "x", uid, "10", `{"n":1}`)
	r.commit(watched(pods, delta.Added, first))
	pods.known.get("a", "x").doc = s2.Encode(nil, []byte(`{"not":"what was`))

	next := made(t, "a", "x", uid, "11", `{"n":2}`)
	require.Equal(t, 1, r.kept(watched(pods, delta.Updated, next)).Mismatches)
	require.Len(t, told, 1)
	require.Equal(t, Mismatch{Stream: pods.ID(), Seq: 2, Key: "a/x", Err: told[0].Err}, told[0])
	require.ErrorContains(t, told[0].Err, "old document")

	require.Zero(t, r.kept(watched(pods, delta.Updated, made(t, "a", "x", uid, "12", `{"n":3}`))).Mismatches)
	history := r.history()
	require.True(t, history[1].HasObj)
	require.False(t, history[1].HasPatch)
	require.Equal(t, string(next.doc), string(history[1].Doc))
	require.False(t, history[2].HasObj)
}

func TestHazardousContentIsReadBackExactly(t *testing.T) {
	r := record(t, newDatabase(t))
	things := r.pods()
	var want []patch.Doc
	rv := 10
	for name, content := range hazards() {
		uid := newUID()
		for _, spec := range []string{`{"plain":true}`, content, strings.Replace(content, "{", `{"more":[1,2],`, 1), `{"plain":true}`, content} {
			rv++
			o := made(t, "a", strings.ReplaceAll(name, " ", "-"), uid, fmt.Sprint(rv), spec)
			want = append(want, o.doc)
			require.Zero(t, r.kept(watched(things, delta.Updated, o)).Mismatches, name)
			if rv%4 == 0 {
				r.reopen()
				things = r.pods()
			}
		}
	}
	history := r.history()
	require.Len(t, history, len(want))
	for i := range want {
		require.Equal(t, string(want[i]), string(history[i].Doc), "seq %d", i+1)
	}
	for i, d := range history {
		if _, unsafe := patch.SafeForSQL(want[i]); unsafe {
			require.True(t, d.HasObj, "a version that SQL cannot hold is stored whole, seq %d", d.Seq)
		}
	}
	require.Equal(t, len(want), one[int](t, r.db, `SELECT count(*) FROM kuberewind.deltas WHERE cluster = $1 AND (object IS NULL OR object -> 'metadata' ->> 'name' <> '')`, r.cfg.ClusterName),
		"SQL can read each object")
	r.verify()
}

func TestTextsThatPostgreSQLCannotHoldAreReplaced(t *testing.T) {
	r := record(t, newDatabase(t))
	st := r.pods()
	o := made(t, "a", "x", newUID(), "1", `1`).managed(t, `{"manager":"bad\u0000","subresource":"sta\u0000tus"}`)
	r.commit(watched(st, delta.Added, o))
	require.Equal(t, "bad\uFFFD sta\uFFFDtus", one[string](t, r.db, `SELECT manager || ' ' || subresource FROM kuberewind.deltas_data WHERE cluster = $1`, r.cluster()))
	r.verify()
}

// The API server bounds neither the length nor the characters of a role's name.
func TestObjectsWhoseNamesTheRecordCutsAreStillDistinct(t *testing.T) {
	r := record(t, newDatabase(t))
	st := r.pods()
	long := noise(6000)
	names := []string{long, long + "x", "nul\x00and more", "bad\uFFFDname", "plain"}
	uids := make([]string, len(names))
	items := []Item{replacedBy(st, delta.CauseFirstList, "1")}
	for i, name := range names {
		uids[i] = newUID()
		items = append(items, watched(st, delta.Added, made(t, "a", name, uids[i], strconv.Itoa(10+i), `1`)))
	}
	r.commit(items...)
	held := all[string](t, r.db, `SELECT name FROM kuberewind.lives WHERE cluster = $1 ORDER BY object_id`, r.cluster())
	require.Len(t, held[0], maxName)
	require.NotEqual(t, held[0], held[1], "their digests differ")
	require.Equal(t, []string{"nul\uFFFDand more", "bad\uFFFDname", "plain"}, held[2:])
	r.reopen()
	st = r.pods()
	for i, name := range names {
		known, exists, _ := st.Known().GetByKey("a/" + name)
		require.True(t, exists, "%.20q", name)
		require.Equal(t, uids[i], string(known.(KnownObject).GetUID()))
	}
	require.Equal(t, 1, r.kept(watched(st, delta.Deleted, made(t, "a", names[0], uids[0], "20", `1`))).Rows)
	require.Equal(t, len(names), one[int](t, r.db, `SELECT count(*) FROM kuberewind.lives WHERE cluster = $1`, r.cluster()), "a restart begins no second life")
	r.verify()
}

func TestItemsThatMakeNoSenseAreRefused(t *testing.T) {
	db := newDatabase(t)
	for _, change := range []func(*Item){
		func(it *Item) { it.Stream = 99 },
		func(it *Item) { it.Kind = 0 },
		func(it *Item) { it.Type = "Odd" },
		func(it *Item) { it.Source = "" },
		func(it *Item) { it.Object = nil },
		func(it *Item) { it.Object = &object{name: "x"} },
	} {
		r := record(t, db)
		it := watched(r.pods(), delta.Added, made(t, "a", "x", newUID(), "1", `1`))
		change(&it)
		_, err := r.sink.Encode([]Item{it})
		require.Error(t, err)
		_, again := r.sink.Encode(nil)
		require.Equal(t, err, again, "the seqs that were given will not be committed")
	}
}

func TestABatchMayHoldTwoDays(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	before, after := watched(pods, delta.Added, made(t, "a", "x", newUID(), "1", `1`)), watched(pods, delta.Added, made(t, "a", "y", newUID(), "2", `1`))
	before.Observed, after.Observed = noon.Add(12*time.Hour-time.Microsecond), noon.Add(12*time.Hour)
	r.commit(before, after)
	require.Equal(t, []string{"2026-03-10 1 1", "2026-03-11 2 2"},
		all[string](t, r.db, `SELECT format('%s %s %s', day, first_seq, last_seq) FROM kuberewind.days WHERE cluster = $1 ORDER BY day`, r.cluster()))
	r.verify()
}
