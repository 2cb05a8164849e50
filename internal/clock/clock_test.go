package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// wristwatch is a clock of a host that the test sets.
type wristwatch struct {
	set    time.Time     // the time to which it was set
	passed time.Duration // since the start
	since  time.Duration // passed when it was set
}

func (w *wristwatch) host() Host {
	return Host{Wall: func() time.Time { return w.set.Add(w.passed - w.since) }, Elapsed: func() time.Duration { return w.passed }}
}

func (w *wristwatch) step(d time.Duration) { w.set, w.since = w.set.Add(w.passed-w.since+d), w.passed }

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 123456789, time.UTC)

const year = 365 * 24 * time.Hour

func TestTheClockDoesNotGoBack(t *testing.T) {
	w := &wristwatch{set: midnight}
	c := New(w.host(), midnight)
	c.Raise(midnight.Add(time.Hour))
	require.Equal(t, midnight.Add(time.Hour), c.Now(), "the record is ahead: the clock continues from there")
	w.passed = 2 * time.Hour
	second := c.Now()
	require.Equal(t, midnight.Add(2*time.Hour).Truncate(time.Microsecond), second)
	c.set(midnight)
	require.Equal(t, second, c.Now())
	w.step(year)
	require.Equal(t, second, c.Now(), "the setting of the wall clock does not matter")
}

func TestTheEarlierOfTwoClocksCountsUnlessItIsBehindTheRecord(t *testing.T) {
	now := midnight
	for name, test := range map[string]struct{ wall, database, record, want time.Time }{
		"they agree":                        {now.Add(50 * time.Second), now, now, now.Add(50 * time.Second)},
		"the host is a year ahead":          {now.Add(year), now, now.Add(-time.Hour), now},
		"the database is a year ahead":      {now, now.Add(year), now.Add(-time.Hour), now},
		"the host is a year behind":         {now.Add(-year), now, now.Add(-time.Hour), now},
		"the database is a year behind":     {now, now.Add(-year), now.Add(-time.Hour), now},
		"the host is behind, and no record": {now.Add(-year), now, time.Unix(0, 0), now.Add(-year)},
		"the record is ahead of both":       {now.Add(-year), now, now.Add(year), now.Add(-year)},
	} {
		require.Equal(t, test.want, Start(test.wall, test.database, test.record), name)
	}
}

// kept is a Keeper with a fake database.
type kept struct {
	*Keeper
	watch    wristwatch
	database time.Duration // how far the clock of the database is ahead of the time since midnight
	away     error
	notes    []postgres.ClockStep
}

func newKept() *kept {
	k := &kept{watch: wristwatch{set: midnight}}
	k.Keeper = NewKeeper(New(k.watch.host(), midnight), k, slog.New(slog.DiscardHandler))
	return k
}

// DatabaseTime implements Record.
func (k *kept) DatabaseTime(context.Context) (time.Time, error) {
	return midnight.Add(k.watch.passed + k.database), k.away
}

// RecordClock implements Record.
func (k *kept) RecordClock(_ context.Context, s postgres.ClockStep) error {
	k.notes = append(k.notes, s)
	return k.away
}

// looks waits ten seconds and checks, several times. It returns, for each recorded step, whether it was adopted.
func (k *kept) looks(t *testing.T, times int) []bool {
	t.Helper()
	k.notes = nil
	var adopted []bool
	for range times {
		k.watch.passed += watchEvery
		require.ErrorIs(t, k.look(t.Context()), k.away)
	}
	for _, n := range k.notes {
		adopted = append(adopted, n.Adopted)
	}
	return adopted
}

// shows returns how much the clock is ahead of the time since midnight.
func (k *kept) shows() time.Duration {
	return k.clock.Now().Sub(midnight.Truncate(time.Microsecond)) - k.watch.passed
}

func TestAStepOfTheWallClockIsAdoptedOnlyWhenTheDatabaseAgrees(t *testing.T) {
	for _, step := range []time.Duration{2 * time.Minute, year} {
		k := newKept()
		k.watch.step(50 * time.Second)
		require.Empty(t, k.looks(t, 3))
		require.Zero(t, k.shows(), "less than a minute is nothing")
		k.watch.step(step)
		require.Equal(t, []bool{false}, k.looks(t, 3), "on record once")
		require.Zero(t, k.shows())
		k.database = step
		require.Equal(t, []bool{true}, k.looks(t, 3))
		require.Equal(t, step+50*time.Second, k.shows())

		before := k.clock.Now()
		k.watch.step(-step)
		require.Equal(t, []bool{false}, k.looks(t, 3))
		k.database = 0
		require.Equal(t, []bool{true}, k.looks(t, 1))
		require.Equal(t, before.Add(40*time.Second), k.clock.Now(), "the clock stands still")
		k.watch.passed += step
		require.Equal(t, 50*time.Second, k.shows(), "the clock goes on when the others have caught up")
	}
}

func TestAStepThatIsUndoneIsForgotten(t *testing.T) {
	k := newKept()
	k.watch.step(year)
	require.Equal(t, []bool{false}, k.looks(t, 2))
	k.watch.step(-year)
	require.Empty(t, k.looks(t, 2))
	k.watch.step(year)
	require.Equal(t, []bool{false}, k.looks(t, 2))
	k.watch.step(time.Hour)
	require.Equal(t, []bool{false}, k.looks(t, 2), "another step")
}

func TestAStepIsNotAdoptedUntilItIsOnRecord(t *testing.T) {
	k := newKept()
	k.watch.step(time.Hour)
	k.database, k.away = time.Hour, errors.New("away")
	k.looks(t, 3)
	require.Zero(t, k.shows())
	k.away = nil
	require.Equal(t, []bool{true}, k.looks(t, 3))
	require.Equal(t, time.Hour, k.shows())
}

// steps returns the rows of the view clock_steps.
func (s *timed) steps() (steps []string) {
	rows, err := s.admin.Query(s.Context(), `
		SELECT concat_ws(' ', epoch, after_seq, round(extract(epoch FROM recorder_at - record_at) / 3600), round(extract(epoch FROM database_at - record_at) / 3600), adopted)
		FROM kuberewind.clock_steps ORDER BY epoch, step`)
	require.NoError(s, err)
	steps, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s, err)
	return steps
}

// timed is a record that is written with a recorder's clock, on a host whose clock is wrong.
type timed struct {
	*testing.T
	url   string
	admin interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		verify.TxBeginner
	}
	sink   *postgres.Sink
	clock  *Clock
	keeper *Keeper
	watch  *wristwatch
	pods   *postgres.Stream
	rv     int
}

func newTimed(t *testing.T) *timed {
	db := pgtest.Shared(t).New(t, pgtest.EmptyRecord)
	s := &timed{T: t, url: db.URL(), admin: db.Pool(t)}
	t.Cleanup(func() { s.sink.Close() })
	return s
}

// holds verifies the whole record.
func (s *timed) holds() {
	s.Helper()
	record, err := history.Open(s.Context(), s.url, history.Options{})
	require.NoError(s, err)
	defer record.Close()
	for f, err := range verify.Record(s.Context(), record, verify.Options{}) {
		require.NoError(s, err)
		require.Fail(s, f.Text, f.Check)
	}
	report, err := verify.Chain(s.Context(), s.admin, "prod")
	require.NoError(s, err)
	require.Empty(s, report.Breaks)
}

// start opens the record as a recorder does, on a host whose clock is off by a duration.
func (s *timed) start(off time.Duration) {
	s.Helper()
	if s.sink != nil {
		s.sink.Close()
	}
	s.watch = &wristwatch{set: time.Now().Add(off)}
	db, err := database.Open(s.Context(), config.Config{Storage: config.Storage{Database: s.url}}, slog.New(slog.DiscardHandler))
	require.NoError(s, err)
	now, record, err := db.Clocks(s.Context(), "uid")
	require.NoError(s, err)
	s.clock = New(s.watch.host(), Start(s.watch.host().Wall(), now, record))
	s.sink, err = postgres.Open(s.Context(), postgres.Config{URL: s.url, ClusterUID: "uid", ClusterName: "prod", Now: s.clock.Now})
	require.NoError(s, err)
	s.clock.Raise(s.sink.Info().Started)
	s.keeper = NewKeeper(s.clock, s.sink, slog.New(slog.DiscardHandler))
	require.NoError(s, s.keeper.Begin(s.Context(), now))
	s.pods, err = s.sink.Stream(s.Context(), postgres.StreamSpec{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true, StartRV: "1"})
	require.NoError(s, err)
	s.write()
}

func timedPod(rv int) *kube.Object {
	o, err := kube.Restore(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%[1]d","namespace":"shop","resourceVersion":"%[1]d","uid":"%[1]d"}}`, rv+1))
	if err != nil {
		panic(err) // of the test
	}
	return o
}

// write records one delta.
func (s *timed) write() {
	s.Helper()
	s.rv++
	batch, err := s.sink.Encode([]postgres.Item{{
		Stream: s.pods.ID(), Kind: postgres.Delta, Type: delta.Added, Source: delta.SourceWatch, Version: "v1",
		Object: timedPod(s.rv), Observed: s.clock.Now(), Position: fmt.Sprint(s.rv + 1),
	}})
	require.NoError(s, err)
	require.NoError(s, s.sink.Commit(s.Context(), batch))
}

// hours returns how many hours the newest observed_at is ahead of the database's clock.
func (s *timed) hours() (hours int) {
	s.Helper()
	rows, err := s.admin.Query(s.Context(), `SELECT round(extract(epoch FROM max(observed_at) - clock_timestamp()) / 3600)::int FROM kuberewind.deltas_data`)
	require.NoError(s, err)
	hours, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	require.NoError(s, err)
	return hours
}

func TestClocksThatJumpDoNotMakeTheRecordJump(t *testing.T) {
	s := newTimed(t)
	s.start(year)
	require.Zero(t, s.hours(), "a recorder whose clock is a year ahead does not move the record")
	s.start(-year)
	require.Zero(t, s.hours(), "a recorder whose clock is a year behind does not stop the record's time")
	s.watch.step(2 * year)
	require.NoError(t, s.keeper.look(t.Context()))
	s.write()
	require.Zero(t, s.hours())
	s.watch.step(-year)
	require.NoError(t, s.keeper.look(t.Context()))
	require.Equal(t, []string{"1 0 8760 0 f", "2 1 -8760 0 f", "2 2 8760 0 f"}, s.steps())
	s.holds()
}

func TestACorrectedClockIsAdopted(t *testing.T) {
	s := newTimed(t)
	s.start(-3 * time.Hour)
	require.Equal(t, -3, s.hours(), "there is no record that shows which of the two is wrong")
	s.watch.step(3 * time.Hour)
	require.NoError(t, s.keeper.look(t.Context()))
	s.write()
	require.Zero(t, s.hours())
	require.Equal(t, []string{"1 0 0 3 f", "1 1 3 3 t"}, s.steps())
	s.holds()
}

func TestARecordThatIsAheadOfTheClocksStandsStill(t *testing.T) {
	s := newTimed(t)
	ahead, err := postgres.Open(t.Context(), postgres.Config{URL: s.url, ClusterUID: "uid", ClusterName: "prod", Now: func() time.Time { return time.Now().Add(year) }})
	require.NoError(t, err)
	ahead.Close()
	s.start(0)
	s.write()
	require.Equal(t, 8760, s.hours(), "both deltas are in the partition of that future day")
	require.Equal(t, []string{"2 0 -8760 -8760 t"}, s.steps())
	s.start(0)
	require.Equal(t, 8760, s.hours())
	s.holds()
}
