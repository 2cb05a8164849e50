package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAMissedDeltaHappenedWithinThePause(t *testing.T) {
	from := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	to := from.Add(10 * time.Minute)
	seen := to.Add(time.Second)
	for _, c := range []struct {
		name     string
		evidence time.Time
		want     time.Time
	}{
		{"evidence from the pause is its time", from.Add(time.Minute), from.Add(time.Minute)},
		{"evidence from before the pause is its beginning", from.Add(-time.Hour), from},
		{"no evidence is the pause's end", time.Time{}, to},
		{"evidence from after the pause is live", to.Add(time.Second), seen},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o occurrence
			o.resume(from, to)
			require.Equal(t, c.want, o.at(to, seen, c.evidence, !c.evidence.IsZero()))
		})
	}
}

func TestAnObjectThatARollbackRestoredGivesNoEvidence(t *testing.T) {
	from := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	to := from.Add(10 * time.Minute)
	var o occurrence
	o.resume(from, to)
	o.noteRollback()
	require.Equal(t, to, o.at(to, to.Add(time.Second), from.Add(-time.Hour), true), "the server served this state before, and another one since")
}

func TestALiveDeltaHappenedWhenItWasObserved(t *testing.T) {
	from := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	to := from.Add(10 * time.Minute)
	old := from.Add(time.Minute)

	var never occurrence
	require.Equal(t, to, never.at(to, to, old, true), "there was no pause")

	var o occurrence
	o.resume(from, to)
	o.live()
	require.Equal(t, to, o.at(to, to, old, true), "a bookmark came")

	o.resume(from, to)
	late := to.Add(catchUpFor + time.Second)
	require.Equal(t, late, o.at(to, late, old, true), "the server sends the missed events at once")
	require.Equal(t, to, o.at(to, to, old, true), "and from then on the stream is live")
}
