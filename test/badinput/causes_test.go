package badinput_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// To the server a position is too old, whyever that is. The record says what made it so.

// The queue and the spool were full for so long that the server has forgotten what it could not send.
func TestAGapSaysThatTheSpoolWasFull(t *testing.T) {
	t.Parallel()
	db, address := private(t)
	cms := configMaps()
	s := newServer(t, cms)
	a := cms.create("a")
	r := begin(t, s, address, listening, func(cfg *config.Config) { cfg.QueueSize, cfg.SpoolSize = "1Mi", "1Mi" })
	record := open(t, db)
	record.awaitCount(cms, 1)
	db.Server().Stop(t)
	flood(cms, a, 60)
	r.awaitMetric(t, "kuberewind_queue_blocked_seconds_total", 2)
	r.await(t, "level=ERROR", "the spool cannot be written", "full")
	a.update(1)
	cms.compact()
	s.cut()
	db.Server().Start(t)
	record = open(t, db)
	record.await("the end of the gap", `SELECT count(*) = 2 FROM kuberewind.gaps WHERE NOT open`)
	r.end(t)
	require.Regexp(t, `^queue and spool were full, and the watch was held back for \d+s; .*too old`, record.requireGaps(cms, "first_list:relisted", "overflow:relisted")[1].detail)
	require.NotEmpty(t, record.strings(`SELECT cause FROM kuberewind.coverage WHERE cause = 'overflow' AND changed = 1`))
}

// A part of the spool cannot be read, and the server has forgotten it.
func TestAGapSaysThatASpoolWasLost(t *testing.T) {
	t.Parallel()
	s, cms, _, db, v := outgrown(t, true)
	v.Kill(t)
	damage(t, v)
	db.Server().Start(t)
	r := v.heir(t, s, db.URL())
	record := open(t, db)
	record.await("the end of the gap", `SELECT count(*) = 2 FROM kuberewind.gaps WHERE NOT open`)
	r.end(t)
	require.Regexp(t, `^a part of the previous recorder's spool could not be read; .*too old`, record.requireGaps(cms, "first_list:relisted", "spool_corrupt:relisted")[1].detail)
}

// Objects that were left out for a while are recovered. If the server has forgotten them, the cause of the gap is that they
// were left out.
func TestAResourceThatIsNoLongerLeftOutIsCaughtUpOnOrHasAGap(t *testing.T) {
	t.Parallel()
	for name, forgotten := range map[string]bool{"the server has it": false, "the server has forgotten it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cms, rds := configMaps(), readings()
			s := newServer(t, cms, rds)
			a, b := cms.create("a"), cms.create("b")
			start := s.head()
			db := pgtest.New(t, pgtest.EmptyRecord)
			r := begin(t, s, db.URL())
			r.end(t)
			key := sameKey(r)
			begin(t, s, db.URL(), key, func(cfg *config.Config) { cfg.Exclude = []string{"configmaps"} }).end(t)
			record := open(t, db)
			require.Equal(t, []string{"configuration: exclude configmaps"}, record.strings(`SELECT cause || ': ' || detail FROM kuberewind.coverage WHERE resource = 'configmaps' AND to_at IS NULL AND NOT complete`))
			a.update(2)
			b.delete()
			want := []string{"first_list:relisted"}
			if forgotten {
				cms.compact()
				want = append(want, "configuration:relisted")
			}
			r = begin(t, s, db.URL(), key)
			if forgotten {
				r.await(t, "msg=listing")
			}
			a.update(1)
			if forgotten {
				record.awaitCount(cms, 2+2+1)
			} else {
				record.awaitCount(cms, 2+3+1)
			}
			r.end(t)
			if !forgotten {
				record.requireHistory(cms, cms.listed(t, start), cms.watched(t, start))
			}
			record.requireGaps(cms, want...)
		})
	}
}

// awaitMetric waits until a metric has reached a value. It can only be polled.
func (r *recording) awaitMetric(t *testing.T, name string, want float64) {
	t.Helper()
	recordertest.Eventually(t.Context(), t, fmt.Sprintf("%s to be %v", name, want), func() bool {
		value, ok := recordertest.ParseMetrics(strings.NewReader(r.metrics(t)))[name]
		return ok && value >= want
	})
}
