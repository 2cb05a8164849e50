package clock_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/apiserver/internal/clock"
)

var (
	day  = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC) // a time of day
	past = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC) // the time of a clock at day
	at   = func(s float64) time.Time { return day.Add(time.Duration(s * float64(time.Second))) }
	then = func(s float64) time.Time { return past.Add(time.Duration(s * float64(time.Second))) }
)

// faster returns a clock with another speed.
func faster(t *testing.T, c clock.Clock, now time.Time, speed float64) clock.Clock {
	t.Helper()
	c, err := c.WithSpeed(now, speed)
	require.NoError(t, err)
	return c
}

func TestAClockShowsTheTimeItWasSetTo(t *testing.T) {
	for name, c := range map[string]struct {
		clock clock.Clock
		shows map[float64]float64 // seconds of the past, by seconds of the day
	}{
		"it stands until it plays":           {clock.New(past), map[float64]float64{0: 0, 10: 0}},
		"it plays at the speed of life":      {clock.New(past).Play(at(5)), map[float64]float64{5: 0, 6: 1, 105: 100}},
		"it stands again after a pause":      {clock.New(past).Play(at(0)).Pause(at(10)), map[float64]float64{10: 10, 90: 10}},
		"it goes on after a pause":           {clock.New(past).Play(at(0)).Pause(at(10)).Play(at(20)), map[float64]float64{20: 10, 25: 15}},
		"it plays 60 times as fast":          {faster(t, clock.New(past), at(0), 60).Play(at(0)), map[float64]float64{1: 60, 60: 3600}},
		"it plays slowly":                    {faster(t, clock.New(past), at(0), 0.1).Play(at(0)), map[float64]float64{10: 1, 100: 10}},
		"a speed counts from when it is set": {faster(t, clock.New(past).Play(at(0)), at(10), 1000), map[float64]float64{10: 10, 11: 1010}},
		"a seek forward goes on playing":     {clock.New(past).Play(at(0)).Seek(at(1), then(500)), map[float64]float64{1: 500, 2: 501}},
		"a seek backward goes on playing":    {clock.New(past).Play(at(0)).Seek(at(100), then(5)), map[float64]float64{100: 5, 101: 6}},
		"a seek of a clock that stands":      {clock.New(past).Seek(at(7), then(5)), map[float64]float64{7: 5, 101: 5}},
		"to play twice changes nothing":      {clock.New(past).Play(at(0)).Play(at(3)), map[float64]float64{4: 4}},
		"a day that is set back":             {clock.New(past).Play(at(10)), map[float64]float64{0: 0, 10: 0, 11: 1}},
	} {
		for now, shown := range c.shows {
			require.Equal(t, then(shown), c.clock.Time(at(now)), "%s, at %v", name, now)
		}
	}
}

func TestAnInvalidSpeedIsRefused(t *testing.T) {
	c := clock.New(past).Play(at(0))
	for _, speed := range []float64{0, -1, 0.09, 1000.1, math.Inf(1), math.NaN()} {
		same, err := c.WithSpeed(at(1), speed)
		require.ErrorContains(t, err, "from 0.1 to 1000", "%v", speed)
		require.Equal(t, c, same)
	}
}

func TestCenturiesDoNotOverflow(t *testing.T) {
	c := faster(t, clock.New(past), at(0), 1000).Play(at(0))
	require.True(t, c.Time(day.AddDate(200, 0, 0)).After(past.AddDate(200, 0, 0)))
}

// TestOnlyASeekMovesTheTime makes random changes in random order.
func TestOnlyASeekMovesTheTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := clock.New(past), day
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			shown := c.Time(now)
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "pass")))
			if c.Time(now).Before(shown) {
				t.Fatalf("the time went back from %s to %s", shown, c.Time(now))
			}
			shown = c.Time(now)
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				c = c.Play(now)
			case 1:
				c = c.Pause(now)
			case 2:
				c, _ = c.WithSpeed(now, rapid.Float64Range(0, 2000).Draw(t, "speed"))
			case 3:
				shown = then(rapid.Float64Range(0, 1e6).Draw(t, "to"))
				c = c.Seek(now, shown)
			}
			if !c.Time(now).Equal(shown) {
				t.Fatalf("the time jumped from %s to %s", shown, c.Time(now))
			}
		}
	})
}
