package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestEnsureDayMakesBothPartitionsOnce(t *testing.T) {
	_, conn := migrated(t)
	require.True(t, one[bool](t, conn, "SELECT kuberewind.ensure_day('2026-03-01')"))
	require.False(t, one[bool](t, conn, "SELECT kuberewind.ensure_day('2026-03-01')"))
	require.Equal(t, []string{"batches_p20260301", "deltas_p20260301"}, partitions(t, conn))
}

func partitions(t *testing.T, conn querier) []string {
	t.Helper()
	return column[string](t, conn, `SELECT relname::text FROM pg_class JOIN pg_inherits ON inhrelid = oid
		WHERE inhparent IN ('kuberewind.deltas_data'::regclass, 'kuberewind.batches'::regclass) AND relkind = 'r' ORDER BY 1`)
}

func TestEnsureDayAcceptsUnusualDays(t *testing.T) {
	_, conn := migrated(t)
	run(t, conn, "SET timezone = 'Pacific/Kiritimati'")
	run(t, conn, "SET datestyle = 'SQL, DMY'")
	for _, day := range []string{"0001-01-01", "1970-01-01", "2100-02-28", "2104-02-29", "9999-12-31"} {
		require.True(t, one[bool](t, conn, "SELECT kuberewind.ensure_day($1::text::date)", day), day)
		for _, clock := range []string{"00:00:00", "23:59:59.999999"} {
			run(t, conn, `INSERT INTO kuberewind.batches VALUES (1, 1, 1, 1, 1, ($1 || 'T' || $2 || 'Z')::timestamptz, now(), '\x')`, day, clock)
		}
	}
	require.Equal(t, 10, one[int](t, conn, "SELECT count(*)::int FROM kuberewind.batches"))
}

func TestEnsureDayRejectsInvalidDays(t *testing.T) {
	_, conn := migrated(t)
	for _, day := range []string{"NULL", "'infinity'", "'-infinity'", "'0044-03-15 BC'", "'10000-01-01'"} {
		_, err := conn.Exec(t.Context(), "SELECT kuberewind.ensure_day("+day+"::date)")
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, day)
		require.Equal(t, "22008", pgErr.Code, day)
	}
}

func TestConcurrentCallsOfEnsureDayAllSucceed(t *testing.T) {
	url, conn := migrated(t)
	group, ctx := errgroup.WithContext(t.Context())
	for range 6 {
		session := connect(t, url)
		group.Go(func() error {
			for day := range 10 {
				if _, err := session.Exec(ctx, "SELECT kuberewind.ensure_day($1)", day1.AddDate(0, 0, day)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Len(t, partitions(t, conn), 20)
}

func TestEnsureDayNeitherWaitsForWritersNorBlocksThem(t *testing.T) {
	url, conn := migrated(t)
	fill(t, conn)
	writer, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	insertDelta(t, writer, deltaRow{seq: 10, object: 6, day: day3, kind: 2, source: 1, patch: "[]"})

	ensuring, err := conn.Begin(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err = ensuring.Exec(ctx, "SELECT kuberewind.ensure_day($1)", day3.AddDate(0, 0, 1))
	require.NoError(t, err, "the partition is made while the writer's transaction is open")
	insertDelta(t, writer, deltaRow{seq: 11, object: 6, day: day3, kind: 2, source: 1, patch: "[]"})
	require.NoError(t, writer.Commit(t.Context()), "the writer continues while the transaction that made the partition is open")
	require.NoError(t, ensuring.Commit(t.Context()))
}

func TestEnsureDayAttachesADetachedDayAgain(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	run(t, conn, "ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260301")
	require.True(t, one[bool](t, conn, "SELECT kuberewind.ensure_day($1)", day1))
	require.Equal(t, 9, one[int](t, conn, "SELECT count(*)::int FROM kuberewind.deltas"))
}

// docs/database.md gives this number.
func TestAQueryTakesFourLocksForEachDay(t *testing.T) {
	_, conn := migrated(t)
	days := func(first, last string) {
		run(t, conn, "SELECT kuberewind.ensure_day(day::date) FROM generate_series($1::text::date, $2::text::date, '1 day') day", first, last)
	}
	locks := func(view string) int {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
		one[int](t, tx, "SELECT count(*)::int FROM kuberewind."+view)
		return one[int](t, tx, "SELECT count(*)::int FROM pg_locks WHERE pid = pg_backend_pid()")
	}
	days("2026-03-01", "2026-03-02")
	before := map[string]int{"deltas": locks("deltas"), "changes": locks("changes")}
	days("2026-03-03", "2026-03-12")
	for view, n := range before {
		require.Equal(t, n+4*10, locks(view), view)
	}
}

func TestPartitionsUseTheCompressionOfTheirParent(t *testing.T) {
	_, conn := migrated(t)
	run(t, conn, "SELECT kuberewind.ensure_day('2026-03-01')")
	want := ""
	if one[bool](t, conn, "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'") {
		want = "l"
	}
	for _, table := range []string{"deltas_data", "deltas_p20260301"} {
		require.Equal(t, []string{want, want, want}, column[string](t, conn, `SELECT replace(attcompression::text, E'\\000', '') FROM pg_attribute
			WHERE attrelid = to_regclass('kuberewind.' || $1) AND attname IN ('patch', 'object', 'exact')`, table))
	}
}
