package history

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestParseInstantReadsEveryForm(t *testing.T) {
	for text, want := range map[string]Instant{
		"now":                            Now(),
		" now ":                          Now(),
		"-10m":                           Ago(10 * time.Minute),
		"-1h30m":                         Ago(90 * time.Minute),
		"-2d":                            Ago(48 * time.Hour),
		"-1d12h":                         Ago(36 * time.Hour),
		"seq:17":                         AtSeq(17),
		"rv:184467440737095516151844674": AtRV("184467440737095516151844674"),
		"2026-03-10T12:00:00Z":           At(booktest.Noon),
		"2026-03-10T13:00:00+01:00":      At(booktest.Noon),
		"2026-03-10 12:00:00Z":           At(booktest.Noon),
		"2026-03-10T12:00Z":              At(booktest.Noon),
		"2026-03-10T12:00:00.123456789Z": At(booktest.Noon.Add(123456789)),
	} {
		got, err := ParseInstant(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseInstant(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again, "%s is parsed back to itself", text)
	}
	for _, text := range []string{"", "yesterday", "10m", "-", "--1h", "-+1h", "-1x", "seq:", "seq:0", "seq:-1", "seq:1.5", "rv:", "rv:0", "rv:01", "rv:abc", "12:00", "2026-13-10T12:00:00Z", "0001-01-01T00:00:00Z"} {
		_, err := ParseInstant(text)
		require.ErrorIs(t, err, ErrInstant, "%q", text)
		require.ErrorContains(t, err, text)
	}
}

// paused returns a record with a pause. During the pause, x changed twice, z was created and deleted, and y was deleted.
func paused(t *testing.T) (*book, time.Time) {
	b := newBook(t, 2)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "y", `1`))
	stopped := b.Now
	b.Pause(time.Hour)
	late := func(it postgres.Item, minutes int) postgres.Item {
		it.Occurred = stopped.Add(time.Duration(minutes) * time.Minute)
		b.pages[len(b.pages)-1].occurred = it.Occurred
		return it
	}
	b.Now = b.Now.Add(time.Second)
	b.commit(
		late(b.set(0, "a", "x", `2`), 10), late(b.set(0, "a", "z", `1`), 12), late(b.set(0, "a", "x", `3`), 20),
		late(b.remove(0, "a", "z"), 30), late(b.remove(0, "a", "y"), 40), b.set(1, "a", "new", `1`))
	b.Now = b.Now.Add(time.Hour)
	b.commit(b.set(0, "a", "x", `4`))
	return b, stopped
}

func TestAnInstantWithinAPauseUsesEstimatedTimes(t *testing.T) {
	b, stopped := paused(t)
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	r := b.record(t)
	for _, minutes := range []int{0, 5, 10, 11, 15, 25, 35, 45, 59} {
		at := stopped.Add(time.Duration(minutes) * time.Minute)
		p := resolved(t, r, At(at), Scope{})
		require.Equal(t, []NoteKind{NoteEstimated}, kinds(p.Notes), "%d minutes", minutes)
		want := b.liveAt(func(p *page) bool { return !p.occurred.After(at) })
		for _, o := range []RebuildOptions{{}, {NoCheckpoint: true}} {
			got, _ := rebuilt(t, r, p, Scope{}, o)
			require.Equal(t, want, got, "%d minutes", minutes)
		}
	}
	p := resolved(t, r, At(stopped.Add(2*time.Hour)), Scope{})
	require.Empty(t, p.Notes)
	require.Zero(t, p.Until)
}

func TestRecoveredDeltasAreFoldedOntoAnEarlierCheckpoint(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	stopped := b.Now
	b.Pause(time.Hour)
	for i := 2; i < 5; i++ {
		it := b.set(0, "a", "x", strconv.Itoa(i))
		it.Occurred = stopped.Add(time.Duration(i) * time.Minute)
		b.pages[len(b.pages)-1].occurred = it.Occurred
		b.commit(it)
	}
	r := b.record(t)
	at := stopped.Add(3 * time.Minute)
	got, stats := rebuilt(t, r, resolved(t, r, At(at), Scope{}), Scope{}, RebuildOptions{})
	require.Equal(t, b.liveAt(func(p *page) bool { return !p.occurred.After(at) }), got)
	require.Equal(t, int64(1), stats.Checkpoint)
}

func TestAnInstantWithinAGapHasANote(t *testing.T) {
	b := newBook(t, 2)
	b.commit(b.set(0, "a", "x", `1`))
	b.Now = b.Now.Add(time.Minute)
	b.commit(postgres.Item{Stream: b.Stream(things(0)).ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "forbidden", Detail: "no rights"}})
	b.Now = b.Now.Add(time.Minute)
	inside := b.Now
	b.commit(b.set(1, "a", "y", `1`))
	r := b.record(t)
	p := resolved(t, r, At(inside), Scope{})
	require.Equal(t, []NoteKind{NoteGap}, kinds(p.Notes), "while it is open")
	require.Contains(t, p.Notes[0].Text, "forbidden, no rights")
	require.Equal(t, "things0", p.Notes[0].Resource)

	b.Now = b.Now.Add(time.Minute)
	b.RV += 10
	b.list(0, "forbidden", delta.SourceRelist, b.vanish(0, "a", "x"))
	b.Now = b.Now.Add(time.Minute)
	b.commit(b.set(1, "a", "y", `2`))
	require.Equal(t, []NoteKind{NoteGap}, kinds(resolved(t, r, At(inside), Scope{}).Notes), "after it is closed")
	require.Empty(t, resolved(t, r, At(inside), Scope{Streams: []int32{2}}).Notes, "of another resource")
	require.Empty(t, resolved(t, r, At(b.Now), Scope{}).Notes, "after it")

	p = resolved(t, r, AtRV(strconv.Itoa(b.RV-5)), Scope{Streams: []int32{1}})
	require.Contains(t, kinds(p.Notes), NoteGap, "by resource version")
	got, _ := rebuilt(t, r, p, Scope{Streams: []int32{1}}, RebuildOptions{})
	require.Contains(t, got, "1 a/x", "only a later list shows its deletion")
}

func TestAResumedInterruptionIsNotAGap(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	b.Now = b.Now.Add(time.Minute)
	b.commit(b.Interrupted(things(0), "unreachable"))
	b.Now = b.Now.Add(10 * time.Minute)
	it := b.set(0, "a", "x", `2`)
	it.Occurred = b.Now.Add(-5 * time.Minute)
	b.commit(b.Resumed(things(0)), it)
	r := b.record(t)
	p := resolved(t, r, At(b.Now.Add(-4*time.Minute)), Scope{})
	require.Equal(t, []NoteKind{NoteEstimated}, kinds(p.Notes))
	got, _ := rebuilt(t, r, p, Scope{}, RebuildOptions{})
	require.Contains(t, got["1 a/x"], `"spec":2`)
	got, _ = rebuilt(t, r, resolved(t, r, At(b.Now.Add(-6*time.Minute)), Scope{}), Scope{}, RebuildOptions{})
	require.Contains(t, got["1 a/x"], `"spec":1`)
}

func TestResourcesThatAreNotRecordedYetAreNamed(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	b.Now = b.Now.Add(time.Hour)
	_, err := b.Sink.Stream(t.Context(), postgres.StreamSpec{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true})
	require.NoError(t, err)
	r := b.record(t)
	p := resolved(t, r, AtSeq(1), Scope{})
	require.Equal(t, []NoteKind{NoteNotYet}, kinds(p.Notes), "the first list is not complete")
	require.Equal(t, "pods", p.Notes[0].Resource)
}

func TestAResourceVersionNeedsOneResourceUnlessOneEtcdServesThem(t *testing.T) {
	b := newBook(t, 2)
	for range 5 {
		b.Now = b.Now.Add(time.Minute)
		b.commit(b.set(0, "a", "x", strconv.Itoa(b.RV)))
		other := b.RV
		b.RV = 1_000_000 + other
		b.commit(b.set(1, "a", "x", strconv.Itoa(b.RV)))
		b.RV = other
	}
	r := b.record(t)
	_, err := r.Resolve(t.Context(), AtRV("12"), Scope{})
	require.ErrorIs(t, err, ErrManyResources)
	require.ErrorContains(t, err, "name one resource")
	p := resolved(t, r, AtRV("12"), Scope{Streams: []int32{1}})
	require.Equal(t, int64(4), p.Seq, "the next version of that resource is beyond it")
}

func TestContradictoryResourceVersionsMeanDifferentEtcds(t *testing.T) {
	b := newBook(t, 2)
	numbers := []int{100, 500, 600, 300, 900}
	for i, other := range numbers {
		b.Now = b.Now.Add(time.Minute)
		b.RV = 100 * (i + 1)
		b.commit(b.set(0, "a", "x", strconv.Itoa(i)))
		b.Now = b.Now.Add(time.Minute)
		b.RV = max(other, 100*i+1)
		if i == 2 {
			b.RV = 5000
		}
		b.commit(b.set(1, "a", fmtName(i), strconv.Itoa(i)))
	}
	r := b.record(t)
	_, err := r.Resolve(t.Context(), AtRV("300"), Scope{})
	require.ErrorIs(t, err, ErrManyResources)
}

func fmtName(i int) string { return "o" + strconv.Itoa(i) }

func TestAResourceVersionCountsInTheNewestGeneration(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "kept", `1`), b.set(0, "a", "deleted", `1`)) // 11, 12
	b.RV = 50
	b.commit(b.set(0, "a", "kept", `2`), b.remove(0, "a", "deleted"), b.set(0, "a", "lost", `1`)) // 51 to 53
	b.Now = b.Now.Add(time.Minute)
	b.commit(b.Interrupted(things(0), delta.CauseHistoryReversed))
	b.Now = b.Now.Add(time.Minute)
	b.RV = 20 // etcd was restored from a backup made then
	lost := b.vanish(0, "a", "lost")
	kept := b.older(11, 0, "a", "kept", `1`)
	deleted := b.older(12, 0, "a", "deleted", `1`)
	b.list(0, delta.CauseHistoryReversed, delta.SourceRelist, lost, b.found(0, kept), b.found(0, deleted))
	list := int64(len(b.pages))
	b.Now = b.Now.Add(time.Minute)
	b.RV = 30
	b.commit(b.set(0, "a", "kept", `3`)) // 31
	r := b.record(t)

	p := resolved(t, r, AtRV("25"), Scope{})
	require.Contains(t, kinds(p.Notes), NoteGeneration)
	for _, o := range []RebuildOptions{{}, {NoCheckpoint: true}} {
		got, _ := rebuilt(t, r, p, Scope{}, o)
		require.Equal(t, b.liveAt(bySeq(list)), got)
	}
	got, _ := rebuilt(t, r, resolved(t, r, AtRV("31"), Scope{}), Scope{}, RebuildOptions{})
	require.Equal(t, b.liveAt(bySeq(list+1)), got)
	_, err := r.Resolve(t.Context(), AtRV("15"), Scope{})
	require.ErrorContains(t, err, "name the instant by its time or seq")
}
