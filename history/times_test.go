package history

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A downtime is a record with a pause of 21 seconds. Tests identify its deltas by their seq.
type downtime struct {
	*book
	began time.Time
}

// newDowntime returns a record before its pause. Things 0 has web; things 1 has settings.
func newDowntime(t *testing.T) *downtime {
	b := newBook(t, 2)
	b.commit(b.set(0, "a", "web", `1`), b.set(1, "a", "settings", `1`))
	return &downtime{book: b}
}

func (o *downtime) pause() {
	o.began = o.Now
	o.Pause(21 * time.Second)
	o.Now = o.Now.Add(time.Second)
}

func (o *downtime) at(seconds int) time.Time {
	return o.began.Add(time.Duration(seconds) * time.Second)
}

// caughtUp marks a delta as recovered, with the time at which it happened as the recorder estimates it.
func (o *downtime) caughtUp(it postgres.Item, seconds int) postgres.Item {
	it.Occurred = o.at(seconds)
	o.pages[len(o.pages)-1].occurred = it.Occurred
	return it
}

// created sets the creationTimestamp of an object. The recorder takes it as the time at which the delta happened.
func (o *downtime) created(it postgres.Item, seconds int) postgres.Item {
	o.t.Helper()
	made := o.pages[len(o.pages)-1].thing
	dated := fmt.Appendf(nil, `"metadata":{"creationTimestamp":%q,`, o.at(seconds).Format(time.RFC3339))
	doc, err := patch.Canonical(bytes.Replace(made.Content, []byte(`"metadata":{`), dated, 1))
	require.NoError(o.t, err)
	made.Content = doc
	return o.caughtUp(it, seconds)
}

// trial repeats what a test on a real cluster found: a scale and a delete between two creations. The objects hold no time
// of the scale or the delete.
func (o *downtime) trial() (scale, deleted int64) {
	o.pause()
	first := o.created(o.set(1, "a", "marker", `1`), 6)
	scaled := o.caughtUp(o.set(0, "a", "web", `2`), 0) // no evidence is newer than the beginning of the pause
	gone := o.caughtUp(o.remove(1, "a", "settings"), 21)
	again := o.created(o.set(1, "a", "settings", `2`), 7)
	last := int64(len(o.pages))
	o.commit(first, gone, again, scaled) // Each stream is in order; the streams are not in step.
	return last, last - 2
}

// spansOf returns the spans of all deltas, by seq.
func spansOf(t *testing.T, r *Record) map[int64]Span {
	t.Helper()
	times := r.Times()
	spans := make(map[int64]Span)
	for d, err := range r.Deltas(t.Context(), Query{}) {
		require.NoError(t, err)
		spans[d.Seq], err = times.Of(t.Context(), &d)
		require.NoError(t, err)
	}
	return spans
}

func TestAdjacentResourceVersionsBoundTheDeltasOfAPause(t *testing.T) {
	o := newDowntime(t)
	scale, deleted := o.trial()
	spans := spansOf(t, o.record(t))
	require.Equal(t, Span{NotBefore: o.at(6), NotAfter: o.at(8), Estimate: o.at(6)}, spans[scale], "it follows the first creation")
	require.Equal(t, Span{NotBefore: o.at(6), NotAfter: o.at(8), Estimate: o.at(7)}, spans[deleted], "it precedes the second creation")
	require.Equal(t, Span{NotBefore: o.began, NotAfter: o.began, Estimate: o.began}, spans[1], "a live delta happened when it was observed")
}

func TestAnInstantWithinAPauseFollowsResourceVersionOrder(t *testing.T) {
	o := newDowntime(t)
	_, err := o.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	scale, deleted := o.trial()
	r := o.record(t)
	for seconds, want := range map[int]map[string]string{
		5: {"1 a/web": `"spec":1`, "2 a/settings": `"spec":1`},
		6: {"1 a/web": `"spec":2`, "2 a/settings": `"spec":1`, "2 a/marker": `"spec":1`},
		8: {"1 a/web": `"spec":2`, "2 a/settings": `"spec":2`, "2 a/marker": `"spec":1`},
	} {
		p := resolved(t, r, At(o.at(seconds)), Scope{})
		for _, options := range []RebuildOptions{{}, {NoCheckpoint: true}} {
			got, _ := rebuilt(t, r, p, Scope{}, options)
			require.Len(t, got, len(want), "%d seconds: %v", seconds, got)
			for name, part := range want {
				require.Contains(t, got[name], part, "%d seconds: %s", seconds, name)
			}
		}
	}
	p := resolved(t, r, At(o.at(5)), Scope{})
	require.Equal(t, map[int64]bool{scale: false}, p.crossed)
	require.Contains(t, kinds(p.Notes), NoteOneEtcd, "a note says what the answer relies on")
	p = resolved(t, r, At(o.at(7)), Scope{})
	require.Equal(t, map[int64]bool{deleted: true}, p.crossed)
}

func TestDisagreeingServerClocksAreReported(t *testing.T) {
	o := newDowntime(t)
	o.pause()
	o.commit(
		o.created(o.set(1, "a", "ahead", `1`), 15), o.caughtUp(o.set(0, "a", "web", `2`), 0), o.created(o.set(1, "a", "behind", `1`), 4))
	r := o.record(t)
	last := int64(len(o.pages))
	require.Equal(t, Span{NotBefore: o.began, NotAfter: o.Now, Estimate: o.began, Contradictory: true}, spansOf(t, r)[last-1])
	p := resolved(t, r, At(o.at(10)), Scope{})
	require.Empty(t, p.crossed)
	require.Contains(t, fmt.Sprint(p.Notes), "clocks of servers contradict")
}

// apart records things 2, which another etcd numbers.
func (o *downtime) apart(rv int) {
	o.t.Helper()
	o.elsewhere(rv, o.follow)
}

// elsewhere calls do with the numbers of another etcd.
func (o *downtime) elsewhere(rv int, do func()) {
	ours := o.RV
	o.RV = rv
	do()
	o.RV = ours
}

func TestAnotherEtcdBoundsNothing(t *testing.T) {
	for name, rv := range map[string]int{"its numbers never lie between ours": 900_000, "its numbers contradict ours": 10} {
		t.Run(name, func(t *testing.T) {
			o := newDowntime(t)
			o.apart(rv)
			o.Now = o.Now.Add(time.Minute)
			o.RV = 5000
			o.commit(o.set(0, "a", "web", `1`), o.set(1, "a", "settings", `1`))
			o.Now = o.Now.Add(time.Minute)
			o.elsewhere(rv+1, func() { o.commit(o.set(2, "a", "other", `1`)) })
			o.pause()
			var items []postgres.Item
			items = append(items, o.created(o.set(1, "a", "marker", `1`), 6), o.caughtUp(o.set(0, "a", "web", `2`), 0), o.created(o.set(1, "a", "late", `1`), 9))
			o.elsewhere(rv+2, func() {
				items = append(items, o.created(o.set(2, "a", "twelve", `1`), 12), o.caughtUp(o.set(2, "a", "other", `2`), 0))
			})
			o.commit(items...)
			last := int64(len(o.pages))
			spans := spansOf(t, o.record(t))
			require.Equal(t, Span{NotBefore: o.at(12), NotAfter: o.Now, Estimate: o.at(12)}, spans[last], "its own resource bounds it")
			if rv > o.RV {
				require.Equal(t, Span{NotBefore: o.at(6), NotAfter: o.at(10), Estimate: o.at(6)}, spans[last-3], "the two resources of one etcd bound each other")
			} else {
				require.Equal(t, Span{NotBefore: o.began, NotAfter: o.Now, Estimate: o.began}, spans[last-3], "it is not established which streams share an etcd")
			}
		})
	}
}

func TestReusedResourceVersionsBoundNothing(t *testing.T) {
	o := newDowntime(t)
	o.pause()
	o.commit(o.Interrupted(things(0), delta.CauseHistoryReversed))
	o.commit(o.created(o.set(1, "a", "marker", `1`), 6), o.caughtUp(o.set(1, "a", "settings", `2`), 0))
	last := int64(len(o.pages))
	require.Equal(t, Span{NotBefore: o.began, NotAfter: o.Now, Estimate: o.began}, spansOf(t, o.record(t))[last])
}

func TestARecorderThatRanForSecondsProlongsThePause(t *testing.T) {
	o := newDowntime(t)
	o.pause()
	began := o.began
	o.commit(o.created(o.set(1, "a", "marker", `1`), 6)) // The other stream did not resume.
	o.pause()
	o.commit(o.caughtUp(o.set(0, "a", "web", `2`), 0))
	last := int64(len(o.pages))
	require.Equal(t, began, spansOf(t, o.record(t))[last].NotBefore, "it may have happened in the first pause")
}

func TestEachPauseHasItsOwnBounds(t *testing.T) {
	o := newDowntime(t)
	want := make(map[int64]Span)
	for round := range 3 {
		o.pause()
		o.commit(o.created(o.set(1, "a", "marker"+strconv.Itoa(round), `1`), 6+round), o.caughtUp(o.set(0, "a", "web", strconv.Itoa(round)), 0))
		want[int64(len(o.pages))] = Span{NotBefore: o.at(6 + round), NotAfter: o.Now, Estimate: o.at(6 + round)}
		o.Now = o.Now.Add(time.Hour)
	}
	got := spansOf(t, o.record(t))
	maps.DeleteFunc(got, func(seq int64, _ Span) bool { _, asked := want[seq]; return !asked })
	require.Equal(t, want, got)
}
