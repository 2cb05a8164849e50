package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

// gapRow is a gap as the public view shows it, with times as the time since noon.
type gapRow struct {
	Cause, Detail, FromRV, FromAt, ToRV, ToAt, Outcome, Counts string
	Open                                                       bool
}

func (r *recording) gaps() []gapRow {
	r.t.Helper()
	rows, err := r.db.admin.Query(context.Background(), `
		SELECT cause, detail, coalesce(from_rv, '-'), from_at, coalesce(to_rv, '-'), to_at, coalesce(outcome, '-'),
			coalesce(appeared || ' ' || changed || ' ' || vanished || ' ' || unchanged, '-'), open
		FROM kuberewind.gaps WHERE cluster = $1 ORDER BY gap`, r.cfg.ClusterName)
	require.NoError(r.t, err)
	gaps, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g gapRow, err error) {
		var from, to *time.Time
		err = row.Scan(&g.Cause, &g.Detail, &g.FromRV, &from, &g.ToRV, &to, &g.Outcome, &g.Counts, &g.Open)
		g.FromAt, g.ToAt = sinceNoon(from), sinceNoon(to)
		return g, err
	})
	require.NoError(r.t, err)
	return gaps
}

func sinceNoon(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Sub(noon).String()
}

func (r *recording) state(st *Stream) string {
	r.t.Helper()
	return one[string](r.t, r.db, `SELECT trim(state || ' ' || detail) FROM kuberewind.streams WHERE cluster = $1 AND stream = $2`, r.cluster(), st.ID())
}

func (r *recording) position(st *Stream) string {
	r.t.Helper()
	return one[string](r.t, r.db, `SELECT format('%s %s', coalesce(position, '-'), coalesce(last_rv, '-')) FROM kuberewind.streams WHERE cluster = $1 AND stream = $2`, r.cluster(), st.ID())
}

func interruptedBy(st *Stream, cause delta.Cause, detail string) Item {
	return Item{Stream: st.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: cause, Detail: detail}}
}

func TestTheFirstListIsAGapFromNothing(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	require.Equal(t, "listing", r.state(pods))
	r.now = noon.Add(time.Minute)
	end := replacedBy(pods, delta.CauseFirstList, "10")
	end.Marker.Appeared = 1
	r.commit(listed(pods, delta.SourceList, made(t, "a", "x", newUID(), "5", `1`)))
	require.Equal(t, "- -", r.position(pods), "the items of a list do not move the position")
	require.Empty(t, pods.Position())
	r.commit(end)
	require.Equal(t, "10 10", r.position(pods))
	require.Equal(t, []gapRow{{Cause: "first_list", FromRV: "-", FromAt: "-", ToRV: "10", ToAt: "1m0s", Outcome: "relisted", Counts: "1 0 0 0"}}, r.gaps())
	require.Equal(t, "live", r.state(pods))
	r.verify()
}

func TestARelistIsAGapFromTheLastPosition(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.now = noon.Add(time.Minute)
	relist := replacedBy(pods, "expired", "50")
	relist.Marker.Detail = "too old resource version"
	r.commit(relist)
	r.now = noon.Add(2 * time.Minute)
	relist.Marker.ToRV, relist.Marker.Changed, relist.Marker.FromTime = "60", 2, noon.Add(90*time.Second)
	r.commit(relist)
	gaps := r.gaps()[1:]
	require.Equal(t, []gapRow{
		{Cause: "expired", Detail: "too old resource version", FromRV: "10", FromAt: "0s", ToRV: "50", ToAt: "1m0s", Outcome: "equal", Counts: "0 0 0 0"},
		{Cause: "expired", Detail: "too old resource version", FromRV: "50", FromAt: "1m30s", ToRV: "60", ToAt: "2m0s", Outcome: "relisted", Counts: "0 2 0 0"},
	}, gaps)
	r.verify()
}

func TestAnInterruptionIsOneGapWithItsFirstCause(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.now = noon.Add(time.Minute)
	r.commit(interruptedBy(pods, "unreachable", "connection refused"))
	r.commit(interruptedBy(pods, "unreachable", "connection refused"))
	r.commit(interruptedBy(pods, "forbidden", "pods is forbidden"))
	require.Equal(t, "interrupted forbidden: pods is forbidden", r.state(pods))
	require.Equal(t, delta.CauseUnreachable, pods.state().gap.Cause)
	require.Equal(t, gapRow{Cause: "unreachable", Detail: "connection refused", FromRV: "10", FromAt: "0s", ToRV: "-", ToAt: "-", Outcome: "-", Counts: "-", Open: true}, r.gaps()[1])

	r.now = noon.Add(2 * time.Minute)
	r.commit(Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed}})
	require.Equal(t, gapRow{Cause: "unreachable", Detail: "connection refused", FromRV: "10", FromAt: "0s", ToRV: "10", ToAt: "2m0s", Outcome: "resumed", Counts: "-"}, r.gaps()[1])
	require.Equal(t, "live", r.state(pods))
	require.Len(t, r.gaps(), 2)
	r.verify()
}

func TestARollbackOpensItsOwnGapWhileAnotherIsOpen(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.now = noon.Add(time.Minute)
	r.commit(interruptedBy(pods, "unreachable", "connection refused"))
	r.now = noon.Add(2 * time.Minute)
	r.commit(interruptedBy(pods, delta.CauseHistoryReversed, "etcd is younger"), interruptedBy(pods, delta.CauseHistoryReversed, "etcd is younger"))
	r.now = noon.Add(3 * time.Minute)
	r.commit(replacedBy(pods, delta.CauseHistoryReversed, "7"))
	require.Equal(t, []gapRow{
		{Cause: "unreachable", Detail: "connection refused", FromRV: "10", FromAt: "0s", ToRV: "10", ToAt: "2m0s", Outcome: "relisted", Counts: "-"},
		{Cause: "history_reversed", Detail: "etcd is younger", FromRV: "10", FromAt: "0s", ToRV: "7", ToAt: "3m0s", Outcome: "equal", Counts: "0 0 0 0"},
	}, r.gaps()[1:])
	require.Equal(t, "7 7", r.position(pods))
	r.verify()
}

// The list and the watch were running when the recorder found the rollback.
func TestOnlyAListAfterARollbackEndsItsGap(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.commit(interruptedBy(pods, delta.CauseHistoryReversed, "proof"))
	r.commit(Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed, Cause: delta.CauseUnreachable}})
	require.Equal(t, delta.CauseHistoryReversed, pods.OpenGap())
	missed := replacedBy(pods, delta.CauseExpired, "20")
	missed.Marker.Vanished = 2
	r.commit(missed)
	require.Equal(t, delta.CauseHistoryReversed, pods.OpenGap())
	require.Equal(t, "interrupted history_reversed", r.state(pods))
	r.commit(replacedBy(pods, delta.CauseHistoryReversed, "15"))
	require.Empty(t, pods.OpenGap())
	require.Equal(t, "live", r.state(pods))
	require.Equal(t, "relisted 2", one[string](t, r.db, `SELECT outcome || ' ' || vanished FROM kuberewind.gaps_data ORDER BY gap DESC LIMIT 1`))
}

// A recorder continues from the record. It finds that the newest versions on record are of another history. Or the
// recorder found that before the stream had reached them.
func TestAGapMayBeginBeforeThePositionButNotAfterIt(t *testing.T) {
	for from, want := range map[string]gapRow{"8": {FromRV: "8", FromAt: "30s"}, "12": {FromRV: "10", FromAt: "1m0s"}} {
		r := record(t, newDatabase(t))
		pods := r.pods()
		r.now = noon.Add(time.Minute)
		r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
		r.now = noon.Add(2 * time.Minute)
		reversed := interruptedBy(pods, delta.CauseHistoryReversed, "etcd is younger")
		reversed.Marker.FromRV, reversed.Marker.FromTime = from, noon.Add(30*time.Second)
		r.commit(reversed)
		gap := r.gaps()[1]
		require.Equal(t, want, gapRow{FromRV: gap.FromRV, FromAt: gap.FromAt})
	}
}

// The stream is complete up to the version that the marker names, so the gap begins there.
func TestAGapBeginsAtTheLastRecordedVersion(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	interrupted := interruptedBy(pods, "undecodable", "garbage")
	interrupted.Marker.FromRV = "11"
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"), watched(pods, delta.Added, made(t, "default", "web", newUID(), "11", `{}`)), interrupted)
	require.Equal(t, "11", r.gaps()[1].FromRV)
}

// An object of a later page of a list is known to be unreadable only after the list has begun.
func TestAnOpenGapNamesTheObjectsThatCannotBeRead(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.commit(interruptedBy(pods, delta.CauseExpired, "too old"))
	r.commit(interruptedBy(pods, delta.CauseUndecodable, "default/a"), interruptedBy(pods, delta.CauseUndecodable, "default/a"))
	r.commit(replacedBy(pods, delta.CauseExpired, "20"))
	gap := r.gaps()[1]
	require.Equal(t, "too old; default/a", gap.Detail)
	require.Equal(t, "expired", gap.Cause)
	r.verify()
}

func TestALossThatAListReportsIsAddedToTheOpenGap(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	end := func(rv, detail string) Item {
		item := replacedBy(pods, "expired", rv)
		item.Marker.Detail = detail
		return item
	}
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.commit(interruptedBy(pods, "expired", "too old"))
	r.commit(end("20", "too old; 1 items repeat a key"))
	r.commit(interruptedBy(pods, "forbidden", "no"))
	r.commit(end("30", "too old"))
	r.commit(interruptedBy(pods, "forbidden", "no"), replacedBy(pods, "forbidden", "40"))
	var details []string
	for _, g := range r.gaps()[1:] {
		details = append(details, g.Detail)
	}
	require.Equal(t, []string{"too old; 1 items repeat a key", "no; too old", "no"}, details)
	r.verify()
}

func TestAGapOpenedAndClosedInOneBatchIsOneRow(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"), interruptedBy(pods, "forbidden", ""), Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed}},
		interruptedBy(pods, "forbidden", ""), replacedBy(pods, "expired", "20"), interruptedBy(pods, "not_found", ""))
	var outcomes []string
	for _, g := range r.gaps() {
		outcomes = append(outcomes, g.Cause+" "+g.Outcome)
	}
	require.Equal(t, []string{"first_list relisted", "forbidden resumed", "forbidden equal", "not_found -"}, outcomes)
	r.verify()
}

func TestAnOpenGapSurvivesARestart(t *testing.T) {
	for _, test := range []struct {
		name    string
		items   func(*testing.T, *Stream) []Item
		outcome string
	}{
		{"and is closed by the watch that goes on", func(t *testing.T, st *Stream) []Item {
			return []Item{watched(st, delta.Added, made(t, "a", "x", newUID(), "11", `1`))}
		}, "resumed"},
		{"and is closed by a bookmark", func(_ *testing.T, st *Stream) []Item { return []Item{bookmark(st, "12")} }, "resumed"},
		{"and is closed by a list", func(_ *testing.T, st *Stream) []Item { return []Item{replacedBy(st, "expired", "30")} }, "equal"},
		{"and stays open without news", func(_ *testing.T, st *Stream) []Item {
			return []Item{interruptedBy(st, "forbidden", "still")}
		}, "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := record(t, newDatabase(t))
			r.commit(replacedBy(r.pods(), delta.CauseFirstList, "10"))
			r.commit(interruptedBy(r.pods(), "forbidden", "no"))
			r.now = noon.Add(time.Hour)
			r.reopen()
			pods := r.pods()
			require.Equal(t, delta.CauseForbidden, pods.state().gap.Cause)
			require.Equal(t, "10", pods.Position())
			r.commit(test.items(t, pods)...)
			require.Equal(t, test.outcome, r.gaps()[1].Outcome)
			require.Len(t, r.gaps(), 2)
			r.verify()
		})
	}
}

// A watch from the position before the list sends versions from before the list. They come too late for what the list
// has already shown, such as the end of an object.
func TestAnUnfinishedListHasToBeListedAgain(t *testing.T) {
	x, z := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "z", newUID(), "12", `1`)
	for name, part := range map[string]func(*Stream) Item{
		"changed": func(st *Stream) Item {
			return listed(st, delta.SourceRelist, made(t, "a", "x", string(x.uid), "50", `5`))
		},
		"vanished": func(st *Stream) Item { return gone(st, z, "60") },
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, newDatabase(t))
			pods := r.pods()
			r.commit(listed(pods, delta.SourceList, x), listed(pods, delta.SourceList, z), replacedBy(pods, delta.CauseFirstList, "20"))
			r.commit(interruptedBy(pods, "expired", "too old"))
			require.Equal(t, "20", pods.Position(), "no part of a list is recorded yet")
			r.commit(part(pods))
			r.reopen()
			pods = r.pods()
			require.Empty(t, pods.Position())
			require.Equal(t, delta.CauseExpired, pods.Unfinished())
			r.commit(watched(pods, delta.Updated, made(t, "a", "other", newUID(), "30", `3`)), bookmark(pods, "31"))
			require.Empty(t, pods.Position(), "a watch does not change that")
			r.commit(replacedBy(pods, "expired", "70"))
			require.Equal(t, "70", pods.Position())
			require.Empty(t, pods.Unfinished())
			require.Len(t, r.gaps(), 2)
			require.Equal(t, gapRow{Cause: "expired", Detail: "too old", FromRV: "20", FromAt: "0s", ToRV: "70", ToAt: "0s", Outcome: "relisted", Counts: "0 0 0 0"}, r.gaps()[1])
			r.verify()
		})
	}
}

func TestAnInterruptionBeforeTheFirstListIsAGapFromNothing(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(interruptedBy(pods, "forbidden", "no"))
	r.commit(Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed}})
	require.Equal(t, "listing", r.state(pods))
	r.commit(interruptedBy(pods, "forbidden", "no"))
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	gaps := r.gaps()
	require.Len(t, gaps, 2)
	require.Equal(t, "- resumed", gaps[0].FromRV+" "+gaps[0].Outcome)
	require.Equal(t, "- relisted", gaps[1].FromRV+" "+gaps[1].Outcome)
	r.verify()
}

func TestThePositionPassesADeleteOnlyAtALaterVersion(t *testing.T) {
	r := record(t, newDatabase(t))
	events := r.stream(StreamSpec{Resource: "events", Kind: "Event", Namespaced: true})
	a, b := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "y", newUID(), "12", `1`)
	r.commit(replacedBy(events, delta.CauseFirstList, "10"), watched(events, delta.Added, a))
	require.Equal(t, "11 11", r.position(events))
	r.commit(watched(events, delta.Added, b))
	require.Equal(t, "12 12", r.position(events))

	// Both expire at 20; the crash comes between them.
	endA, endB := *a, *b
	endA.rv, endB.rv = "20", "20"
	r.commit(watched(events, delta.Deleted, &endA))
	require.Equal(t, "12 20", r.position(events))
	r.reopen()
	events = r.stream(StreamSpec{Resource: "events", Kind: "Event", Namespaced: true})
	require.Equal(t, "12", events.Position())
	r.commit(watched(events, delta.Deleted, &endA), watched(events, delta.Deleted, &endB))
	require.Equal(t, "12 20", r.position(events))
	require.Len(t, r.history(), 4)
	require.False(t, events.state().bookmarks)

	c := made(t, "a", "z", newUID(), "21", `1`)
	r.commit(watched(events, delta.Added, c))
	require.Equal(t, "21 21", r.position(events), "all that expired at 20 came before it")
	c.rv = "22"
	r.commit(watched(events, delta.Deleted, c))
	require.Equal(t, "21 22", r.position(events))
	r.commit(bookmark(events, "22"))
	require.Equal(t, "22 22", r.position(events), "a bookmark says that nothing more has its version")

	r.commit(bookmark(events, "25"))
	require.Equal(t, "25 25", r.position(events))
	require.True(t, events.state().bookmarks)
	r.commit(bookmark(events, "24"))
	require.Equal(t, "25 25", r.position(events), "a bookmark does not go back")
	r.commit(Item{Stream: events.ID(), Kind: Position, Source: delta.SourceWatch, Position: "26"})
	require.Equal(t, "25 26", r.position(events), "an event that is not recorded may be a delete")
}

func TestWatchDoesNotMoveThePositionOfAStreamThatWasNeverListed(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(watched(pods, delta.Added, made(t, "a", "x", newUID(), "11", `1`)), bookmark(pods, "12"))
	require.Equal(t, "- 11", r.position(pods))
	r.reopen()
	require.Empty(t, r.pods().Position())
}

func TestAStreamOfANewResourceStartsWithoutAListOrAGap(t *testing.T) {
	r := record(t, newDatabase(t))
	spec := StreamSpec{Group: "example.com", Resource: "things", Kind: "Thing", StartRV: "100"}
	registered := func() bool {
		registered, err := r.sink.Prior().Registered(t.Context(), spec.Group, spec.Resource)
		require.NoError(t, err)
		return registered
	}
	require.False(t, registered())
	things := r.stream(spec)
	require.True(t, registered())
	require.Equal(t, "100", things.Position())
	require.Equal(t, "live", r.state(things))
	require.True(t, things.Empty())
	require.True(t, things.New())
	r.reopen()
	things = r.stream(spec)
	require.True(t, things.Empty(), "a restart does not forget it")
	require.False(t, things.New())
	x := made(t, "", "x", newUID(), "101", `1`)
	r.commit(watched(things, delta.Added, x))
	require.Empty(t, r.gaps())
	spec.StartRV = "999"
	require.Equal(t, "101", r.stream(spec).Position(), "StartRV is ignored once the stream is recorded")
	r.reopen()
	require.Equal(t, "101", r.stream(spec).Position())
	x.rv = "102"
	r.commit(watched(r.stream(spec), delta.Deleted, x))
	require.Equal(t, []string{"101", "102"}, []string{r.stream(spec).Position(), r.stream(spec).Newest()}, "more deletes may share it")
	require.False(t, r.stream(spec).Empty())
	require.False(t, r.pods().Empty(), "it was never listed")
}

func TestAFilterIsInForceFromTheListMadeUnderIt(t *testing.T) {
	r := record(t, newDatabase(t))
	spec := StreamSpec{Resource: "pods", Filter: "app=web"}
	listedUnder := func(st *Stream, filter, rv string) Item {
		replaced := replacedBy(st, "configuration", rv)
		replaced.Marker.Rules = filter
		return replaced
	}
	pods := r.stream(spec)
	require.Equal(t, "app=web", pods.Filter())
	r.commit(listedUnder(pods, "app=web", "10"))
	r.reopen()
	require.Equal(t, "app=web", r.stream(spec).Filter())
	spec.Filter = "app=db"
	require.Equal(t, "app=web", r.stream(spec).Filter())
	r.reopen()
	pods = r.stream(spec)
	require.Equal(t, "app=web", pods.Filter(), "a restart does not forget it")
	r.commit(listedUnder(pods, "app=web", "20"))
	require.Equal(t, "app=web", pods.Filter(), "a batch keeps its filter, even if it waited on disk")
	r.commit(listedUnder(pods, "app=db", "30"))
	require.Equal(t, "app=db", pods.Filter())
	r.reopen()
	require.Equal(t, "app=db", r.stream(spec).Filter())
}

func TestExclusionsHoldAcrossRestarts(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	x, y, z := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "y", newUID(), "12", `1`), made(t, "a", "z", newUID(), "13", `1`)
	exclude := func(kind ItemKind, o *object) Item {
		return Item{Stream: pods.ID(), Kind: kind, Object: o, Position: o.rv}
	}
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"), exclude(Excluded, x), exclude(Excluded, y), exclude(Excluded, z), exclude(Unexcluded, z))
	require.True(t, pods.Excluded(x.uid))
	require.False(t, pods.Excluded(z.uid))
	r.commit(exclude(Excluded, x), exclude(Unexcluded, y), exclude(Excluded, y), exclude(Unexcluded, z))
	require.Equal(t, "12 13", r.position(pods))
	r.reopen()
	pods = r.pods()
	require.True(t, pods.Excluded(x.uid))
	require.True(t, pods.Excluded(y.uid))
	r.commit(Item{Stream: pods.ID(), Kind: Unexcluded, UID: y.uid, Key: "a/y"})
	require.Equal(t, []string{string(x.uid)}, all[string](t, r.db, `SELECT uid FROM kuberewind.exclusions WHERE cluster = $1`, r.cluster()))
	require.Equal(t, "a x", one[string](t, r.db, `SELECT namespace || ' ' || name FROM kuberewind.exclusions WHERE cluster = $1`, r.cluster()))
	require.Empty(t, r.history())
}

func TestStreamsAreNumberedOnceEvenWhenOpenedAtOnce(t *testing.T) {
	r := record(t, newDatabase(t))
	done := make(chan *Stream)
	const streams = 12
	for i := range streams {
		go func() {
			st, err := r.sink.Stream(context.Background(), StreamSpec{Resource: fmt.Sprint("r", i)})
			if err != nil {
				t.Error(err)
			}
			done <- st
		}()
	}
	seen := make(map[int32]bool)
	for range streams {
		seen[(<-done).ID()] = true
	}
	require.Len(t, seen, streams)
	version := r.stream(StreamSpec{Resource: "r1", Version: "v2", Kind: "R"})
	require.Same(t, version, r.stream(StreamSpec{Resource: "r1", Version: "v2", Kind: "R"}))
	require.Equal(t, "v2", one[string](t, r.db, `SELECT version FROM kuberewind.streams WHERE cluster = $1 AND resource = 'r1'`, r.cluster()))
}

// Objects that expire with one lease are deleted with one resource version. The server may have sent only some of these
// deletes.
func TestAGapBeginsBeforeADeleteWhoseVersionOthersMayShare(t *testing.T) {
	for name, test := range map[string]struct {
		last func(*Stream, *object) Item
		want string
	}{
		"a deletion": {func(st *Stream, o *object) Item { return watched(st, delta.Deleted, o) }, "11"},
		"an excluded event": {func(st *Stream, o *object) Item {
			return Item{Stream: st.ID(), Kind: Position, Source: delta.SourceWatch, Position: o.rv}
		}, "11"},
		"an update": {func(st *Stream, o *object) Item { return watched(st, delta.Updated, o) }, "12"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, newDatabase(t))
			pods, uid := r.pods(), newUID()
			interrupted := interruptedBy(pods, "undecodable", "garbage")
			interrupted.Marker.FromRV, interrupted.Marker.FromTime = "12", noon.Add(time.Second)
			r.commit(replacedBy(pods, delta.CauseFirstList, "10"), watched(pods, delta.Added, made(t, "default", "web", uid, "11", `{}`)),
				test.last(pods, made(t, "default", "web", uid, "12", `{}`)))
			r.commit(interrupted)
			require.Equal(t, test.want, r.gaps()[1].FromRV)

			r.commit(replacedBy(pods, "undecodable", "20"))
			interrupted.Marker.FromRV = "20"
			r.commit(interrupted)
			require.Equal(t, "20", r.gaps()[2].FromRV, "a list has all of its resource version")
		})
	}
}
