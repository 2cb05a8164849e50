package timeline_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
)

const (
	running = `,"status":{"phase":"Running"}`
	crashes = `,"status":{"phase":"Running","containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`
)

// lacking holds the common parts of incomplete answers.
type lacking struct {
	Incomplete []struct{ Kind, Text string }
	Next       string
}

func (l *lacking) kinds() map[string]int {
	kinds := map[string]int{}
	for _, each := range l.Incomplete {
		kinds[each.Kind]++
	}
	return kinds
}

// threeDays returns a record of three days; the second is missing. settings was written on each day. One Pod broke on the
// missing day, another on the last day.
func threeDays(t *testing.T) (b *booktest.Shop, lost time.Time) {
	b = booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "configmaps", "settings", `"labels":{"app":"web"},`, `,"data":{"n":"1"}`)
	b.Watched(delta.Added, "pods", "first", "", running)
	b.Now = booktest.Noon.AddDate(0, 0, 1)
	b.Watched(delta.Updated, "configmaps", "settings", `"labels":{"app":"web"},`, `,"data":{"n":"2"}`)
	b.Now = b.Now.Add(6 * time.Hour)
	b.Watched(delta.Updated, "pods", "first", "", crashes)
	b.Now = booktest.Noon.AddDate(0, 0, 2).Add(-2 * time.Hour)
	b.Watched(delta.Updated, "configmaps", "settings", `"labels":{"app":"web"},`, `,"data":{"n":"3"}`)
	b.Watched(delta.Added, "pods", "second", "", running)
	b.Now = b.Now.Add(time.Hour)
	b.Watched(delta.Updated, "pods", "second", "", crashes)
	b.Watched(delta.Updated, "pods", "first", `"labels":{"seen":"1"},`, crashes)
	lost = booktest.Noon.AddDate(0, 0, 1)
	b.Lose(lost)
	return b, lost
}

func TestEachAnswerReportsAMissingDay(t *testing.T) {
	b, lost := threeDays(t)
	s := served(t, b.DB, time.Minute)
	from, to := millis(lost.Add(time.Hour)), millis(lost.Add(2*time.Hour))
	whole := url.Values{"from": {millis(booktest.Noon)}, "to": {millis(b.Now.Add(time.Second))}}
	settings := url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}}
	with := func(base url.Values, more ...url.Values) url.Values {
		all := url.Values{}
		for _, each := range append(more, base) {
			for name, values := range each {
				all[name] = values
			}
		}
		return all
	}
	within := url.Values{"from": {from}, "to": {to}}
	for _, test := range []struct {
		shape string
		v     url.Values
	}{
		{"strip", whole},
		{"strip", within},
		{"strip", with(whole, url.Values{"label": {"app=web"}})},
		{"lanes", whole},
		{"lanes", with(within, url.Values{"resource": {"configmaps"}})},
		{"ticks", with(whole, url.Values{"lanes": {"1"}})},
		{"ticks", with(within, url.Values{"lanes": {"1"}})},
		{"states", with(within, url.Values{"lanes": {"1"}})},
		{"changes", whole},
		{"changes", within},
		{"story", with(whole, settings)},
		{"story", with(within, settings)},
		{"blame", settings},
		{"trouble", s.end()},
	} {
		var got lacking
		s.ask(t, test.shape, test.v, &got)
		require.Equal(t, 1, got.kinds()["pruned"], "%s %v: %v", test.shape, test.v, got.Incomplete)
	}
	var lanes laneList
	s.ask(t, "lanes", whole, &lanes)
	require.Len(t, lanes.Lanes, 3, "one reading finds lives from before and after the missing day")
}

func TestALabelIsFoundOnBothSidesOfAMissingDay(t *testing.T) {
	b, _ := threeDays(t)
	var got bars
	s := served(t, b.DB, time.Minute)
	s.ask(t, "strip", url.Values{"from": {millis(booktest.Noon)}, "to": {millis(b.Now.Add(time.Second))}, "label": {"app=web"}}, &got)
	n := int64(0)
	for _, each := range got.counted() {
		n += each
	}
	require.Equal(t, int64(2), n)
}

func TestTheBeginningOfATroubleIsUnknownAcrossAMissingDay(t *testing.T) {
	b, _ := threeDays(t)
	s := served(t, b.DB, time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Len(t, got.Items, 2)
	first, second := got.named("first"), got.named("second")
	require.Nil(t, first.Since, "the Pod may have been well on the missing day")
	require.Contains(t, first.Unknown, "2026-03-11")
	require.NotNil(t, second.Since)
	require.Empty(t, second.Unknown)
	require.Equal(t, "made", second.FirstChange.Text)
}

func TestAnAnswerReportsADamagedVersion(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "pods", "web", "", running)
	b.Watched(delta.Updated, "pods", "web", "", crashes)
	b.Watched(delta.Updated, "pods", "web", `"labels":{"a":"b"},`, crashes)
	b.Watched(delta.Added, "pods", "other", "", crashes)
	b.DB.Exec(t, `UPDATE kuberewind.deltas_data SET digest = decode(md5('x'), 'hex') WHERE seq = 2`)
	s := served(t, b.DB, time.Minute)
	var got struct {
		lacking
		Items []trouble
	}
	s.ask(t, "trouble", s.end(), &got)
	require.Positive(t, got.kinds()["damaged"])
	require.Len(t, got.Items, 1, "the list lacks the unreadable object, and the answer reports it")
	for shape, v := range map[string]url.Values{
		"strip": {"label": {"a=b"}, "from": {millis(booktest.Noon)}, "to": {millis(booktest.Noon.Add(time.Second))}},
		"story": {"resource": {"pods"}, "namespace": {"shop"}, "name": {"web"}, "from": {millis(booktest.Noon)}, "to": {millis(booktest.Noon.Add(time.Second))}},
	} {
		var lacks lacking
		s.ask(t, shape, v, &lacks)
		require.Positive(t, lacks.kinds()["damaged"], shape)
	}
	var blame struct {
		lacking
		Lines []struct{ Text string }
	}
	s.ask(t, "blame", url.Values{"resource": {"pods"}, "namespace": {"shop"}, "name": {"web"}}, &blame)
	require.Positive(t, blame.kinds()["damaged"])
	require.NotEmpty(t, blame.Lines, "the lines come from the last undamaged version")
}

// A row that holds the whole object needs nothing of earlier days.
func TestAKeyframeIsShownAfterAMissingDay(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.Now = booktest.Noon.AddDate(0, 0, 1)
	b.Watched(delta.Updated, "configmaps", "settings", "", `,"data":{"n":"2"}`)
	lost := b.Now
	b.Now = booktest.Noon.AddDate(0, 0, 2)
	b.Sweep()
	b.Lose(lost)
	s := served(t, b.DB, time.Minute)
	var got struct {
		lacking
		YAML []struct{ Text string }
		Diff []struct{ Path string }
	}
	s.ask(t, "object", url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}, "at": {"seq:3"}}, &got)
	require.Contains(t, got.YAML, struct{ Text string }{`  "n": "2"`})
	require.Empty(t, got.Diff)
	require.Equal(t, 1, got.kinds()["pruned"], "its changes are unknown")
}
