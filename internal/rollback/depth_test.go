package rollback

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// measured is a stream in an etcd that gets a write each five seconds. It holds the measurement of that etcd.
type measured struct {
	all   *Streams
	etcd  *archive
	c     *Stream
	found measures
}

func newMeasured(t *testing.T) *measured {
	t.Helper()
	m := &measured{all: New(Options{}), etcd: &archive{now: 100}, found: measures{}}
	m.c, _ = followed(m.all, "events", m.etcd, 100)
	require.NoError(t, m.all.Probe(t.Context()))
	return m
}

// pass writes and measures for d. etcd compacts the history that is older than keeps, each time that it is twice as
// old.
func (m *measured) pass(t *testing.T, d, keeps time.Duration) {
	t.Helper()
	for range d / noteEvery {
		time.Sleep(noteEvery)
		m.etcd.now++
		m.c.Reached(strconv.Itoa(m.etcd.now))
		if steps := int(keeps / noteEvery); steps > 0 && m.etcd.now%steps == 0 {
			m.etcd.compacted = m.etcd.now - steps
		}
		require.NoError(t, m.all.measure(t.Context(), m.found))
	}
}

func TestTheAgeOfTheOldestReadableRevisionIsTheHistoryKept(t *testing.T) {
	for _, keeps := range []time.Duration{15 * time.Second, time.Minute, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			m := newMeasured(t)
			require.Zero(t, m.c.Kept())
			for range 20 {
				m.pass(t, keeps, keeps)
				require.Less(t, m.c.Kept(), 2*keeps+noteEvery)
			}
			require.GreaterOrEqual(t, m.c.Kept(), keeps-noteEvery)
		})
	}
}

func TestTheHistoryKeptGrowsWhileOlderRevisionsStayReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeasured(t)
		m.pass(t, time.Minute, 0)
		require.InDelta(t, time.Minute, m.c.Kept(), float64(20*time.Second))
		m.pass(t, time.Hour, 0)
		require.InDelta(t, notedFor, m.c.Kept(), float64(QuietMost))
		for _, d := range m.found {
			require.LessOrEqual(t, len(d.notes), int(notedFor/noteEvery)+1, "memory is bounded")
		}
	})
}

// Without writes, etcd keeps the newest revision, however often it is compacted. So its age says nothing about the
// history kept.
func TestTheNewestRevisionHasNoAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeasured(t)
		for range 100 {
			time.Sleep(noteEvery)
			require.NoError(t, m.all.measure(t.Context(), m.found))
		}
		require.Zero(t, m.c.Kept())
	})
}

func TestOneReadMeasuresAnEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeasured(t)
		followed(m.all, "pods", m.etcd, 100)
		require.NoError(t, m.all.Probe(t.Context()))
		m.pass(t, time.Hour, 0)
		before := m.etcd.asked.Load()
		m.pass(t, 15*time.Minute, 0)
		require.InDelta(t, 10, m.etcd.asked.Load()-before, 1, "one read each ninety seconds")
	})
}

func TestAServerThatDoesNotAnswerKeepsTheLastMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeasured(t)
		m.pass(t, 2*time.Minute, 0)
		kept := m.c.Kept()
		m.etcd.fails = errors.New("connection refused")
		for range 30 {
			time.Sleep(noteEvery)
			_ = m.all.measure(t.Context(), m.found) // the error is that the server does not answer
		}
		require.Equal(t, kept, m.c.Kept())
		m.etcd.fails = nil
		m.etcd.compacted = m.etcd.now
		time.Sleep(noteEvery)
		require.NoError(t, m.all.measure(t.Context(), m.found))
		require.Less(t, m.c.Kept(), kept)
	})
}

func TestNotesOfAnOldHistoryAreDropped(t *testing.T) {
	d := &depth{}
	d.note(10, time.Now())
	d.note(12, time.Now())
	d.note(11, time.Now())
	require.Len(t, d.notes, 1)
}
