package timeline_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
)

// A ticked holds the ticks of lanes from an answer.
type ticked struct {
	lacking
	Lanes []struct {
		ID               int64
		Time, Seq, Count []int64
		Class, Manager   []int
		Hidden           int64
	}
	Managers []string
	Older    string
}

func (a *ticked) sum() (n int64) {
	for _, l := range a.Lanes {
		for _, of := range l.Count {
			n += of
		}
	}
	return n
}

// named returns the managers of ticks by name. Their numbers follow the order in which they were found.
func (a *ticked) named() (all [][]string) {
	for _, l := range a.Lanes {
		var names []string
		for _, i := range l.Manager {
			name := ""
			if i >= 0 {
				name = a.Managers[i]
			}
			names = append(names, name)
		}
		all = append(all, names)
	}
	return all
}

func TestContinuedTicksAndLanesReachTheWhole(t *testing.T) {
	patient, hasty := newScene(t, time.Minute), newScene(t, time.Nanosecond)
	v := patient.whole()
	v.Set("limit", "500")
	var whole, part laneList
	patient.ask(t, "lanes", v, &whole)
	require.Empty(t, whole.Older)
	answers := hasty.countedOn(t, "lanes", v, func() (string, int64) {
		part = laneList{}
		hasty.ask(t, "lanes", v, &part)
		return part.Older, sum(part.Lanes)
	})
	require.Greater(t, answers, 1)
	require.Equal(t, whole, part)

	var ids []string
	for _, l := range whole.Lanes[:40] {
		ids = append(ids, strconv.FormatInt(l.ID, 10))
	}
	v = patient.whole()
	v.Set("lanes", strings.Join(ids, ","))
	var all, some ticked
	patient.ask(t, "ticks", v, &all)
	answers = hasty.countedOn(t, "ticks", v, func() (string, int64) {
		some = ticked{}
		hasty.ask(t, "ticks", v, &some)
		require.Equal(t, some.Older != "", some.kinds()["unread"] > 0)
		return some.Older, some.sum()
	})
	require.Greater(t, answers, 1)
	require.Equal(t, all.named(), some.named())
	for i := range all.Lanes {
		all.Lanes[i].Manager, some.Lanes[i].Manager = nil, nil
	}
	require.Equal(t, all.Lanes, some.Lanes)
}

func sum(lanes []lane) (n int64) {
	for _, l := range lanes {
		n += l.Changes
	}
	return n
}

// countedOn repeats a request until everything is counted. Each answer includes the previous one.
func (s *scene) countedOn(t *testing.T, shape string, v url.Values, ask func() (older string, counted int64)) (answers int) {
	t.Helper()
	for before := int64(0); ; {
		older, counted := ask()
		require.GreaterOrEqual(t, counted, before, shape)
		if answers, before = answers+1, counted; older == "" {
			v.Del("cursor")
			return answers
		}
		v.Set("cursor", older)
	}
}

// The next lanes of a list belong to the same list, whatever is recorded between two pages.
func TestPagesOfLanesBelongToOneList(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	for _, name := range []string{"a", "b", "c"} {
		b.Watched(delta.Added, "pods", name, "", running)
	}
	b.Watched(delta.Updated, "pods", "a", "", crashes)
	b.Watched(delta.Updated, "pods", "b", "", crashes)
	s := served(t, b.DB, time.Minute)
	v := url.Values{"from": {millis(booktest.Noon.Add(-time.Minute))}, "to": {millis(booktest.Noon.Add(time.Hour))}, "group": {"none"}, "limit": {"1"}}
	var names []string
	for {
		var got laneList
		s.ask(t, "lanes", v, &got)
		require.Equal(t, int64(3), got.Total)
		names = append(names, got.Lanes[0].Name)
		if got.Next == "" {
			break
		}
		b.Watched(delta.Updated, "pods", "c", "", `,"spec":{"n":`+strconv.Itoa(len(names))+`}`)
		b.Watched(delta.Updated, "pods", "c", "", running)
		b.Watched(delta.Added, "pods", "new"+strconv.Itoa(len(names)), "", running)
		v.Set("cursor", got.Next)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
}
