package recorder

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/streamtest"
)

func TestTheRecorderCountsForTheTimelineUnderItsOwnRole(t *testing.T) {
	s := newSwept(t)
	s.nextDay("things", "pods")
	_, fifo := s.Follow("pods", "Thing")
	require.NoError(t, fifo.Add(streamtest.Served(t, "Thing", "another", 40)))
	s.Pump()
	s.run(s.recorder().countAhead)
	require.Eventually(t, func() bool {
		return len(s.Texts(`SELECT width FROM kuberewind.activity WHERE day = '2026-03-10'`)) == 5
	}, 5*time.Minute, 10*time.Millisecond, "the day that is over is counted")
	require.Equal(t, []string{"1 2 2"}, s.Texts(`SELECT concat_ws(' ', first_seq, last_seq, (SELECT sum(n) FROM unnest(counts) n)) FROM kuberewind.activity WHERE width = 'hour'`))
	require.NotEmpty(t, s.Texts(`SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'kuberewind counts'`))
}
