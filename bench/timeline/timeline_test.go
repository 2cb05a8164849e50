package timeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

func TestMain(m *testing.M) {
	if err := Children().Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

// onScene serves the recorded scene. It lasts for ten minutes.
func onScene(t *testing.T, use func(*bench)) {
	t.Helper()
	database := pgtest.New(t, scenetest.Record)
	run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
	require.NoError(t, inBench(t.Context(), run, Record{URL: database.URL(), Text: "the scene"}, func(b *bench) error {
		use(b)
		return nil
	}))
}

func TestEachFigureOfTheServerIsTakenAndJudged(t *testing.T) {
	onScene(t, func(b *bench) {
		require.NoError(t, b.asked(t.Context()))
		require.NoError(t, b.Report.Table(t.Output()))
		ways := map[string]int{
			"timeline-page": 1, "timeline-strip": 5, "timeline-slice": 4, "timeline-lanes": 1, "timeline-compare": 1, "timeline-object": 3,
		}
		require.Len(t, b.Report.Results, len(ways))
		for _, result := range b.Report.Results {
			require.Len(t, result.Ways, ways[result.Name], result.Name)
			for _, way := range result.Ways {
				for _, q := range result.Quantities {
					require.Len(t, way.Values[q.Name], 1)
					if q.Name != used { // the kernel counts hundredths of a second
						require.Positive(t, way.Values[q.Name][0], "%s of %s, %s", q.Name, way.Name, result.Name)
					}
				}
			}
			for _, j := range result.Judged {
				require.Equal(t, Number, j.Number)
				require.Positive(t, j.AtMost)
			}
			if result.Name != "timeline-object" { // its limit is that of the click
				require.Len(t, result.Judged, len(result.Ways), result.Name)
			}
		}
	})
}

func TestAMarkThatIsLeftOutIsCountedAndOneThatIsDrawnTwiceIsAnError(t *testing.T) {
	onScene(t, func(b *bench) {
		conn, err := pgx.Connect(t.Context(), b.record.URL)
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
		day := b.day(0)
		d := &drawing{From: day.from.UnixMilli(), To: day.to.UnixMilli(), Strip: b.subject.seq, Density: b.subject.seq, Lanes: map[int64]int64{}}
		var id, n int64
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT object_id, count(*) FROM kuberewind.deltas GROUP BY object_id ORDER BY count(*) DESC LIMIT 1`).Scan(&id, &n))
		d.Lanes[id] = n
		recorded, lost, err := b.missing(t.Context(), d)
		require.NoError(t, err)
		require.Equal(t, []int64{2*b.subject.seq + n, 0}, []int64{recorded, lost})
		d.Lanes[id], d.Strip = n-1, d.Strip-2
		_, lost, err = b.missing(t.Context(), d)
		require.NoError(t, err)
		require.EqualValues(t, 3, lost)
		d.Lanes[id] = n + 1
		_, _, err = b.missing(t.Context(), d)
		require.ErrorIs(t, err, errAnswer)
	})
}

func TestAChangeIsCommittedAsARecorderWrites(t *testing.T) {
	onScene(t, func(b *bench) {
		w, err := b.newWriter(t.Context())
		require.NoError(t, err)
		defer w.close()
		for i := range int64(2) {
			seq, err := w.change(t.Context())
			require.NoError(t, err)
			require.Equal(t, b.subject.seq+1+i, seq)
			var kind, path, value string
			require.NoError(t, w.pool.QueryRow(t.Context(), `SELECT type, path, new #>> '{}' FROM kuberewind.deltas JOIN kuberewind.changes c USING (cluster, seq, type) WHERE seq = $1 AND path LIKE '%/bench'`, seq).
				Scan(&kind, &path, &value))
			require.Equal(t, "Updated", kind)
			require.Equal(t, fmt.Sprint(w.last), value)
		}
	})
}

func TestWindowsLieWithinTheRecordAndAreTheSameInARoundThatIsRunAgain(t *testing.T) {
	first := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	s := &subject{first: first, last: first.Add(30 * time.Hour)}
	all := s.windows(1, 0)
	require.Len(t, all, 4*places+1)
	for i, w := range all {
		require.False(t, w.from.Before(first), i)
		require.False(t, w.to.After(s.last.Add(time.Millisecond)), i)
	}
	require.Equal(t, window{first, s.last.Add(time.Millisecond)}, all[len(all)-1])
	require.Equal(t, s.last.Add(time.Millisecond), all[0].to, "the page begins at the end")
	require.Equal(t, all, s.windows(1, 0))
	require.NotEqual(t, all, s.windows(1, 1))
}

func TestAPercentileIsAValueThatWasMeasured(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	require.InDelta(t, 95, percentile(hundred, 95), 0)
	require.InDelta(t, 99, percentile(hundred, 99), 0)
	require.InDelta(t, 7, percentile([]float64{7}, 99), 0)
	require.Zero(t, percentile(nil, 95))
}

func TestARefusedQuestionEndsTheRun(t *testing.T) {
	onScene(t, func(b *bench) {
		_, err := b.client.once(t.Context(), "strip", b.subject.windows(1, 0)[0].query("path", "no pointer"))
		require.ErrorIs(t, err, errAnswer)
		require.ErrorContains(t, err, "no JSON pointer")
	})
}
