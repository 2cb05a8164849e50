package booktest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Stepped steps the clock of the recorder to a time, with which the database agrees.
func (s *Shop) Stepped(to time.Time) {
	s.t.Helper()
	step := postgres.ClockStep{Record: s.Now, Recorder: to, Database: to, Adopted: true}
	require.NoError(s.t, s.Sink.RecordClock(context.Background(), step))
	s.Now = to
}

// Lose detaches the partition of a day.
func (s *Shop) Lose(day time.Time) {
	s.t.Helper()
	s.DB.Exec(s.t, "ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p"+day.Format("20060102"))
}

// Sweep completes the sweep of the day. Living objects without a row on that day are stored again, so that earlier days
// may be dropped.
func (s *Shop) Sweep() {
	s.t.Helper()
	var items []postgres.Item
	for _, stream := range s.Names() {
		st := s.Stream(stream)
		for _, key := range st.Known().ListKeys() {
			o, _, err := st.Known().GetByKey(key)
			require.NoError(s.t, err)
			items = append(items, postgres.Item{Stream: st.ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceResync, Object: o.(postgres.KnownObject)})
		}
	}
	s.Sink.CompleteSweep(s.Now)
	s.Commit(items...)
	require.True(s.t, s.Sink.Swept(s.Now))
}
