package timeline_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type lane struct {
	ID                        int64
	UID, Resource, Kind, Name string
	Namespace                 string
	Depth                     int
	Owner, Born, Ended        *int64
	Changes, Hidden           int64
}

type laneList struct {
	Total  int64
	Lanes  []lane
	Left   map[string]int64
	Hidden map[string]int64
	Next   string
	Older  string
}

func (s *scene) whole() url.Values {
	return url.Values{"from": {strconv.FormatInt(s.extent.FirstAt.UnixMilli(), 10)}, "to": {strconv.FormatInt(s.extent.LastAt.UnixMilli()+1, 10)}}
}

func TestLanesAreBelowTheirOwners(t *testing.T) {
	s := newScene(t, time.Minute)
	v := s.whole()
	v.Set("namespace", "shop")
	v.Set("limit", "500")
	var got laneList
	s.ask(t, "lanes", v, &got)
	require.Len(t, got.Lanes, int(got.Total))
	byID, path := map[int64]lane{}, []lane{}
	for _, l := range got.Lanes {
		byID[l.ID] = l
		require.LessOrEqual(t, l.Depth, len(path), "%s %s", l.Kind, l.Name)
		path = append(path[:l.Depth], l)
		if l.Depth > 0 {
			require.Equal(t, path[l.Depth-1].ID, *l.Owner)
		}
		if l.Kind == "Pod" && l.Owner != nil && byID[*l.Owner].Kind == "ReplicaSet" {
			require.Equal(t, 2, l.Depth, "a Pod of a Deployment is below its ReplicaSet")
		}
	}
	require.NotEmpty(t, got.Left["events"], "Events have no lanes, but are counted")
}

func TestTwoLivesOfOneNameHaveTwoLanes(t *testing.T) {
	s := newScene(t, time.Minute)
	v := s.whole()
	v.Set("resource", "configmaps")
	v.Set("name", "limits")
	var got laneList
	s.ask(t, "lanes", v, &got)
	require.Len(t, got.Lanes, 2)
	first, second := got.Lanes[0], got.Lanes[1]
	if first.ID > second.ID {
		first, second = second, first
	}
	require.NotNil(t, first.Ended)
	require.NotNil(t, second.Born)
	require.LessOrEqual(t, *first.Ended, *second.Born)
}

func TestPagesOfLanesAddUpToTheWholeList(t *testing.T) {
	s := newScene(t, time.Minute)
	v := s.whole()
	v.Set("limit", "500")
	v.Set("sort", "name")
	var all laneList
	s.ask(t, "lanes", v, &all)
	v.Set("limit", "7")
	var paged []lane
	for {
		var page laneList
		s.ask(t, "lanes", v, &page)
		require.Equal(t, all.Total, page.Total)
		if paged = append(paged, page.Lanes...); page.Next == "" {
			break
		}
		v.Set("cursor", page.Next)
	}
	if all.Next == "" {
		require.Equal(t, all.Lanes, paged)
	}
	require.Len(t, paged, int(all.Total))
}
