package retention_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/retention"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fourDays makes a record of four days. Each day, pod "busy" changes, and a new pod is made, which is deleted the next day. Pod "quiet" never
// changes. All days except the third are swept.
func fourDays(t *testing.T) (url string, admin *pgxpool.Pool) {
	t.Helper()
	pods := postgres.StreamSpec{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true}
	b := booktest.New(t, booktest.Options{Streams: []postgres.StreamSpec{pods}, Begin: noon})
	defer b.Close()
	watched := func(kind delta.Type, name string) postgres.Item {
		return b.Item("pods", kind, delta.SourceWatch, b.Next("pods", "shop", name, "uid-of-"+name, "", fmt.Sprintf(`,"spec":{"n":%d}`, b.RV)))
	}
	b.Commit(b.Listed("pods", delta.CauseFirstList, delta.SourceList))
	for day := range 4 {
		b.Now = noon.AddDate(0, 0, day)
		if day == 0 {
			b.Commit(watched(delta.Added, "quiet"), watched(delta.Added, "busy"))
		} else {
			b.Commit(watched(delta.Updated, "busy"), watched(delta.Deleted, fmt.Sprint("of-", day-1)))
		}
		b.Commit(watched(delta.Added, fmt.Sprint("of-", day)))
		if day != 2 {
			b.Now = b.Now.Add(time.Hour)
			known, _, err := b.Stream("pods").Known().GetByKey("shop/quiet")
			require.NoError(t, err)
			b.Sink.CompleteSweep(b.Now)
			b.Commit(postgres.Item{Stream: b.Stream("pods").ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceResync, Object: known.(postgres.KnownObject)},
				watched(delta.Updated, "busy"))
			require.True(t, b.Sink.Swept(b.Now))
		}
		b.Now = b.Now.Add(time.Hour)
		b.Commit(watched(delta.Updated, "busy"))
	}
	return b.DB.URL(), b.DB.Pool(t)
}

// pruner returns a connection of a login that may only prune.
func pruner(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "SET ROLE "+migrations.PrunerRole)
	require.NoError(t, err)
	return conn
}

func days(report retention.Report) (names []string) {
	for _, d := range report.Dropped {
		names = append(names, d.Day+" "+d.Why)
	}
	return names
}

// since returns how long ago a day of the record began, by the clock of this machine, which is also that of the database.
func since(day int) time.Duration { return time.Since(time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC)) }

// holds verifies the rest of the record.
func holds(t *testing.T, url string, admin *pgxpool.Pool) *history.Record {
	t.Helper()
	record, err := history.Open(t.Context(), url, history.Options{})
	require.NoError(t, err)
	t.Cleanup(record.Close)
	for f, err := range verify.Record(t.Context(), record, verify.Options{}) {
		require.NoError(t, err)
		require.Fail(t, f.Text, f.Check)
	}
	report, err := verify.Chain(t.Context(), admin, "test")
	require.NoError(t, err)
	require.Empty(t, report.Breaks)
	return record
}

func TestDaysAreDroppedByAgeAndTheRestVerifies(t *testing.T) {
	url, admin := fourDays(t)
	conn := pruner(t, url)
	options := retention.Options{OlderThan: since(3), Reason: "age", DryRun: true}
	planned, err := retention.Prune(t.Context(), conn, options)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-03-01 age", "2026-03-02 age"}, days(planned), "a day is dropped if it ended that long ago")
	require.Empty(t, planned.Obstacle)
	require.Less(t, planned.Left, planned.Bytes)

	options.DryRun = false
	report, err := retention.Prune(t.Context(), conn, options)
	require.NoError(t, err)
	require.Equal(t, days(planned), days(report), "a dry run reports the same days")
	require.EqualValues(t, 1, report.Lives)
	record := holds(t, url, admin)

	// The third day was never swept, so the record is complete only from the sweep of the fourth day on.
	for _, text := range []string{"2026-03-01T13:00:00Z", "2026-03-03T20:00:00Z", "seq:1", "rv:101", "rv:104"} {
		instant, err := history.ParseInstant(text)
		require.NoError(t, err)
		_, err = record.Resolve(t.Context(), instant, history.Scope{})
		require.ErrorIs(t, err, history.ErrBeforeRecord, text)
		require.ErrorContains(t, err, "is before what is left of the record, which begins at 2026-03-04T13:00:00Z", text)
	}
	instant, err := history.ParseInstant("2026-03-04T13:00:00Z")
	require.NoError(t, err)
	_, err = record.Resolve(t.Context(), instant, history.Scope{})
	require.NoError(t, err)

	again, err := retention.Prune(t.Context(), conn, options)
	require.NoError(t, err)
	require.Empty(t, again.Dropped)
}

func TestTheClockOfTheHostDoesNotCount(t *testing.T) {
	url, _ := fourDays(t)
	older := since(2)
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 2000, time.Now().UTC().Year(), "the host's clock is years behind")
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		defer func() { _ = conn.Close(context.Background()) }()
		report, err := retention.Prune(t.Context(), conn, retention.Options{OlderThan: older, Reason: "age", DryRun: true})
		require.NoError(t, err)
		require.Equal(t, []string{"2026-03-01 age"}, days(report))
	})
}

func TestDaysAreDroppedBySizeAndTheLastOneStays(t *testing.T) {
	url, admin := fourDays(t)
	conn := pruner(t, url)
	all, err := retention.Prune(t.Context(), conn, retention.Options{MaxBytes: 1 << 60, Reason: "size"})
	require.NoError(t, err)
	require.Empty(t, all.Dropped)
	one, err := retention.Prune(t.Context(), conn, retention.Options{MaxBytes: all.Bytes - 1, Reason: "size"})
	require.NoError(t, err)
	require.Equal(t, []string{"2026-03-01 size"}, days(one))
	holds(t, url, admin)

	rest, err := retention.Prune(t.Context(), conn, retention.Options{MaxBytes: 1, Reason: "size"})
	require.NoError(t, err)
	require.Equal(t, []string{"2026-03-02 size", "2026-03-03 size"}, days(rest))
	require.Equal(t, "2026-03-04", rest.Kept.Day)
	require.Contains(t, rest.Obstacle, "the cluster test keeps it: no sweep of it is complete after that day")
	holds(t, url, admin)
}

// overtaken is a connection that calls by before it drops its first day.
type overtaken struct {
	*pgx.Conn
	by func()
}

func (o *overtaken) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if strings.Contains(sql, "prune_day") {
		o.by()
	}
	return o.Conn.QueryRow(ctx, sql, args...)
}

func TestADayThatAnotherPrunerDropsIsNoObstacle(t *testing.T) {
	url, admin := fourDays(t)
	other := pruner(t, url)
	conn := &overtaken{pruner(t, url), sync.OnceFunc(func() {
		report, err := retention.Prune(t.Context(), other, retention.Options{OlderThan: since(2), Reason: "age"})
		require.NoError(t, err)
		require.Equal(t, []string{"2026-03-01 age"}, days(report))
	})}
	report, err := retention.Prune(t.Context(), conn, retention.Options{OlderThan: since(3), Reason: "age"})
	require.NoError(t, err)
	require.Equal(t, []string{"2026-03-02 age"}, days(report))
	require.Empty(t, report.Obstacle)
	holds(t, url, admin)
}

func TestADayThatIsAlwaysReadIsReportedAndStays(t *testing.T) {
	url, admin := fourDays(t)
	reading, err := admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = reading.Exec(t.Context(), "SELECT count(*) FROM kuberewind.deltas_data")
	require.NoError(t, err)
	conn := pruner(t, url)
	options := retention.Options{OlderThan: since(2), Reason: "age", Attempts: 2, Pause: time.Millisecond}
	_, err = retention.Prune(t.Context(), conn, options)
	require.ErrorIs(t, err, retention.ErrBusy)
	require.ErrorContains(t, err, "day 2026-03-01: the day is in use: a query that reads it, or an autovacuum")
	require.NoError(t, reading.Rollback(t.Context()))
	report, err := retention.Prune(t.Context(), conn, options)
	require.NoError(t, err)
	require.Len(t, report.Dropped, 1)
}

// checked returns the findings of verify.Record.
func checked(t *testing.T, url string) (texts []string) {
	t.Helper()
	record, err := history.Open(t.Context(), url, history.Options{})
	require.NoError(t, err)
	defer record.Close()
	for f, err := range verify.Record(t.Context(), record, verify.Options{}) {
		require.NoError(t, err)
		texts = append(texts, string(f.Check)+": "+f.Text)
	}
	return texts
}

func TestVerifyFindsDaysThatWereDroppedWithoutAPrune(t *testing.T) {
	const goes = `
		DROP TABLE kuberewind.deltas_p2026030…, kuberewind.batches_p2026030…;
		DELETE FROM kuberewind.days WHERE day = '2026-03-0…'`
	for name, c := range map[string]struct {
		days  []string
		prune time.Duration // afterwards
		found []string
		batch int64
	}{
		"the oldest":              {days: []string{"1", "2", "3"}, found: []string{"seq: seq 1 to 15 are not on record, and no prune says that they were dropped"}, batch: 13},
		"before one that is said": {days: []string{"1"}, prune: since(3), found: []string{"seq: seq 1 to 5 are not on record, and no prune says that they were dropped"}},
		"all":                     {days: []string{"1", "2", "3", "4"}, found: []string{"seq: seq 1 to 21 are not on record, and no prune says that they were dropped"}, batch: 16},
	} {
		t.Run(name, func(t *testing.T) {
			url, admin := fourDays(t)
			for _, day := range c.days {
				_, err := admin.Exec(t.Context(), strings.ReplaceAll(goes, "…", day))
				require.NoError(t, err)
			}
			if c.prune != 0 {
				_, err := retention.Prune(t.Context(), pruner(t, url), retention.Options{OlderThan: c.prune, Reason: "age"})
				require.NoError(t, err)
			}
			require.Equal(t, c.found, checked(t, url))
			report, err := verify.Chain(t.Context(), admin, "test")
			require.NoError(t, err)
			if c.batch != 0 {
				require.Len(t, report.Breaks, 1)
				require.Equal(t, c.batch, report.Breaks[0].Batch)
			}
		})
	}
}

func TestTheOldestCommitIsChainedToTheLastDroppedOne(t *testing.T) {
	url, admin := fourDays(t)
	_, err := retention.Prune(t.Context(), pruner(t, url), retention.Options{OlderThan: since(2), Reason: "age"})
	require.NoError(t, err)
	holds(t, url, admin)
	_, err = admin.Exec(t.Context(), "UPDATE kuberewind.deltas_data SET manager = 'nobody' WHERE seq = (SELECT min(first_seq) FROM kuberewind.days)")
	require.NoError(t, err)
	report, err := verify.Chain(t.Context(), admin, "test")
	require.NoError(t, err)
	require.False(t, report.Anchored)
	require.Len(t, report.Breaks, 1)
	require.Equal(t, report.FirstBatch, report.Breaks[0].Batch)
}
