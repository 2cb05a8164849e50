package history

import (
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestNowIsTheEndOfTheRecordIfTheRecordersClockIsAhead(t *testing.T) {
	b := newBook(t, 1)
	b.Now = time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)
	b.commit(b.set(0, "a", "x", `1`))
	r := b.record(t)
	p := resolved(t, r, Now(), Scope{})
	require.Equal(t, int64(1), p.Seq)
	require.Equal(t, b.Now, p.Time)
	require.Empty(t, p.Notes)
	_, err := r.Resolve(t.Context(), Ago(0), Scope{})
	require.ErrorIs(t, err, ErrBeforeRecord, "an instant by time is not moved")
}

func TestANewResourceVersionIsFoundImmediately(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	r := b.record(t)
	resolved(t, r, Now(), Scope{}) // remembers the streams for a moment
	b.commit(b.set(0, "a", "x", `2`))
	p := resolved(t, r, AtRV(strconv.Itoa(b.RV)), Scope{})
	require.Empty(t, p.Notes)
	got, _ := rebuilt(t, r, p, Scope{}, RebuildOptions{})
	require.Equal(t, b.liveAt(bySeq(2)), got)
}

func TestARecordWithoutItsLastRowIsReadUpToTheRowBeforeIt(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "y", `1`), b.set(0, "a", "x", `2`))
	b.DB.Exec(t, `DELETE FROM kuberewind.deltas_data WHERE seq = 3`)
	r := b.record(t)
	for _, at := range []Instant{Now(), AtSeq(3), AtRV("12"), AtRV("13")} {
		got, _ := rebuilt(t, r, resolved(t, r, at, Scope{}), Scope{}, RebuildOptions{})
		require.Equal(t, b.liveAt(bySeq(2)), got, "%s", at)
	}
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
}

func TestADamagedRowOfALaterDeletedObjectDoesNotMatter(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "x", `2`))
	stopped := b.Now
	b.Pause(time.Hour)
	gone := b.remove(0, "a", "x")
	gone.Occurred = stopped.Add(10 * time.Minute)
	b.commit(gone)
	b.DB.Exec(t, `UPDATE kuberewind.deltas_data SET patch = jsonb_set(patch, '{0,value}', '9') WHERE seq = 2`)
	r := b.record(t)
	got, _ := rebuilt(t, r, resolved(t, r, At(stopped.Add(20*time.Minute)), Scope{}), Scope{}, RebuildOptions{})
	require.Empty(t, got)
	_, err := r.Rebuild(t.Context(), resolved(t, r, At(stopped.Add(5*time.Minute)), Scope{}), Scope{}, RebuildOptions{}, func(Object) error { return nil })
	var damaged *DamagedError
	require.ErrorAs(t, err, &damaged, "while the object lived, the damage matters")
}

func TestRecoveredDeltasOfAMissingDayAreAnError(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	stopped := b.Now
	b.Pause(24 * time.Hour)
	late := b.set(0, "a", "x", `2`)
	late.Occurred = stopped.Add(time.Minute)
	b.commit(late)
	r := b.record(t)
	p := resolved(t, r, At(stopped.Add(time.Hour)), Scope{})
	b.DB.Exec(t, `ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260311`)
	// The old reader read the day a moment ago and still counts it as present.
	_, err := b.record(t).Rebuild(t.Context(), p, Scope{}, RebuildOptions{}, func(Object) error { return nil })
	var missing *MissingDayError
	require.ErrorAs(t, err, &missing)
}

// reversed returns a record of an etcd that was at resource version 53 and was restored from a backup of version 20. It
// ends with the list after the restore; list is its last seq.
func reversed(t *testing.T) (b *book, list int64) {
	b = newBook(t, 1)
	b.commit(b.set(0, "a", "kept", `1`)) // 11
	b.RV = 50
	b.commit(b.set(0, "a", "lost", `1`), b.set(0, "a", "lost", `2`)) // 51, 52
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	b.commit(b.set(0, "a", "lost", `3`)) // 53
	b.Now = b.Now.Add(time.Minute)
	b.commit(b.Interrupted(things(0), delta.CauseHistoryReversed))
	b.Now = b.Now.Add(time.Minute)
	b.RV = 20
	b.list(0, delta.CauseHistoryReversed, delta.SourceRelist, b.vanish(0, "a", "lost"))
	return b, int64(len(b.pages))
}

func TestStreamRVUsesTheNewestGeneration(t *testing.T) {
	b, list := reversed(t)
	b.Now = b.Now.Add(time.Minute)
	b.commit(b.set(0, "a", "kept", `2`)) // 21
	b.commit(b.set(0, "a", "kept", `3`)) // 22
	r := b.record(t)
	for seq, want := range map[int64]string{3: "52", 4: "53", list: "20", list + 1: "21", list + 2: "22"} {
		rv, err := r.StreamRV(t.Context(), resolved(t, r, AtSeq(seq), Scope{}), 1)
		require.NoError(t, err)
		require.Equal(t, want, rv, "seq %d", seq)
	}
}

// A deletion without grace has no evidence of its time, so it counts as the end of the pause. A new object of the same name
// within the pause proves an earlier end.
func TestOnlyOneLifeOfANameIsLiveWithinAPause(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "y", `1`))
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	b.commit(b.set(0, "a", "z", `1`))
	stopped := b.Now
	b.Pause(time.Hour)
	late := func(it postgres.Item, minutes int) postgres.Item {
		it.Occurred = stopped.Add(time.Duration(minutes) * time.Minute)
		return it
	}
	b.commit(
		late(b.remove(0, "a", "x"), 60), late(b.set(0, "a", "x", `2`), 10),
		late(b.remove(0, "a", "z"), 60), late(b.set(0, "a", "z", `2`), 10), late(b.remove(0, "a", "z"), 15))
	again := b.pages[4].thing
	b.Now = b.Now.Add(time.Hour)
	b.commit(b.set(0, "a", "end", `1`))
	r := b.record(t)
	want := map[string]string{"1 a/x": string(again.Content), "1 a/y": string(b.pages[1].thing.Content)}
	at := At(stopped.Add(20 * time.Minute))
	for _, o := range []RebuildOptions{{}, {NoCheckpoint: true}} {
		got, _ := rebuilt(t, r, resolved(t, r, at, Scope{}), Scope{}, o)
		require.Equal(t, want, got)
	}
	for _, sql := range []string{
		`SELECT (object ->> 'spec')::int FROM kuberewind.snapshot_at('', $1::text) WHERE name <> 'y'`,
		`SELECT (kuberewind.object_at('', NULL, 'things0', 'a', 'x', $1::text) ->> 'spec')::int`,
	} {
		rows, err := r.Pool().Query(t.Context(), sql, at.String())
		require.NoError(t, err)
		specs, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err)
		require.Equal(t, []int{2}, specs, sql)
	}

	// A watch from there must not show the end of the earlier life. The client would take it for the end of the life in its
	// list.
	l := NewListWatch(r, ListWatchOptions{Resource: schema.GroupVersionResource{Group: "example.com", Resource: "things0"}, PlayerOptions: PlayerOptions{From: at}})
	list, err := l.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.(*unstructured.UnstructuredList).Items, 2)
	w, err := l.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: list.(*unstructured.UnstructuredList).GetResourceVersion()})
	require.NoError(t, err)
	defer w.Stop()
	event := <-w.ResultChan()
	require.Equal(t, watch.Added, event.Type)
	require.Equal(t, "end", event.Object.(*unstructured.Unstructured).GetName())
}
