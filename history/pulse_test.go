package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/booktest"
)

func TestAPulseHasTheConditionOfTheRecord(t *testing.T) {
	now := booktest.Noon
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	last := Pulse{Recorder: "host/1", ObservedAt: before(time.Minute), CommittedAt: before(time.Minute), ChosenAt: before(time.Second), RenewedAt: before(time.Second), Now: now}
	for name, c := range map[string]struct {
		change func(*Pulse)
		ago    time.Duration
		want   Condition
		says   string
	}{
		"a quiet minute":               {func(*Pulse) {}, 0, Following, ""},
		"no time of the commit":        {func(p *Pulse) { p.CommittedAt = time.Time{} }, 0, Following, ""},
		"renewed ten seconds ago":      {func(p *Pulse) { p.RenewedAt = before(LagWithin) }, 0, Following, ""},
		"not renewed any more":         {func(p *Pulse) { p.RenewedAt = before(LagWithin + 1) }, 0, Stopped, "no recorder records this cluster: "},
		"read long ago":                {func(*Pulse) {}, LagWithin, Stopped, "no recorder records this cluster: "},
		"ended":                        {func(p *Pulse) { p.ChosenAt, p.RenewedAt = time.Time{}, time.Time{} }, 0, Stopped, "no recorder records this cluster: "},
		"chosen":                       {func(p *Pulse) { p.RenewedAt = time.Time{} }, 0, Starting, "the recorder host/1 was chosen and has committed nothing yet: "},
		"chosen, and killed":           {func(p *Pulse) { p.ChosenAt, p.RenewedAt = before(LagWithin+1), time.Time{} }, 0, Stopped, "no recorder records this cluster: "},
		"ten seconds late":             {func(p *Pulse) { p.ObservedAt = p.CommittedAt.Add(-LagWithin) }, 0, Following, ""},
		"later":                        {func(p *Pulse) { p.ObservedAt = p.CommittedAt.Add(-11 * time.Second) }, 0, Behind, "the recorder is 11s behind the cluster: "},
		"two minutes of nothing":       {func(p *Pulse) { p.CommittedAt = before(QuietWithin) }, 0, Following, ""},
		"three minutes, and late then": {func(p *Pulse) { p.ObservedAt, p.CommittedAt = before(4*time.Minute), before(3*time.Minute) }, 0, Quiet, "the recorder host/1 runs and has committed nothing for 3m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			p := last
			c.change(&p)
			require.Equal(t, c.want, p.Condition(c.ago))
			if c.says == "" {
				require.Empty(t, p.Outdated(c.ago))
				return
			}
			require.Contains(t, p.Outdated(c.ago), c.says)
			require.Contains(t, p.Outdated(c.ago), "the last commit was at 2026-03-10T")
		})
	}
}
