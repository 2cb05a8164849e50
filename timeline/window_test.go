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
	"github.com/kuberewind/kuberewind/sink/postgres"
)

type trouble struct {
	Name, Text  string
	Since       *int64
	FirstChange *struct{ Text string }
	Unknown     string
}

type troubles struct{ Items []trouble }

func (l *troubles) named(name string) (found trouble) {
	for _, each := range l.Items {
		if each.Name == name {
			return each
		}
	}
	return found
}

// If a gap touches a window, the Handler looks for deltas until half an hour after its end. Those deltas do not belong to
// the window.
func TestAWindowKeepsItsEndIfAGapTouchesIt(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "pods", "web", "", running)
	b.Commit(b.Interrupted("configmaps", "expired"))
	b.Now = booktest.Noon.Add(10 * time.Minute)
	end := b.Now
	b.Commit(b.Listed("configmaps", "expired", delta.SourceRelist))
	b.Now = booktest.Noon.Add(12 * time.Minute)
	b.Watched(delta.Updated, "pods", "web", "", crashes)
	b.Watched(delta.Added, "pods", "later", "", crashes)
	b.Now = booktest.Noon.Add(time.Hour)
	b.Watched(delta.Updated, "pods", "web", "", running)
	s := served(t, b.DB, time.Minute)
	window := url.Values{"from": {millis(booktest.Noon.Add(-time.Minute))}, "to": {millis(end)}, "namespace": {"shop"}}
	var got struct {
		Lanes []struct {
			Name, Trouble string
			ID            int64
		}
	}
	s.ask(t, "lanes", window, &got)
	require.Len(t, got.Lanes, 1, "the Pod that was created after the window has no lane")
	require.Empty(t, got.Lanes[0].Trouble, "it broke after the window")
	window.Del("namespace")
	var states struct {
		From, To int64
		Lanes    []struct{ State []string }
	}
	asked := url.Values{"from": window["from"], "to": window["to"], "lanes": {strconv.FormatInt(got.Lanes[0].ID, 10)}}
	s.ask(t, "states", asked, &states)
	require.NotContains(t, states.Lanes[0].State, "bad")
	window.Set("resource", "pods")
	window.Set("namespace", "shop")
	window.Set("name", "web")
	var story struct {
		Rows    []struct{ Time int64 }
		Command string
	}
	s.ask(t, "story", window, &story)
	require.Len(t, story.Rows, 1)
	require.Less(t, story.Rows[0].Time, end.UnixMilli())
	require.Equal(t, "replay story pods/web -n shop --since 2026-03-10T11:59:00Z --until 2026-03-10T12:10:00Z", story.Command)
}

func TestAQuietWindowKeepsItsLanes(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "pods", "web", "", running)
	b.Watched(delta.Added, "leases", "leader", "", "")
	b.Now = booktest.Noon.Add(time.Hour)
	b.Watched(delta.Updated, "pods", "web", "", crashes)
	s := served(t, b.DB, time.Minute)
	var got laneList
	s.ask(t, "lanes", url.Values{"from": {millis(booktest.Noon.Add(time.Minute))}, "to": {millis(booktest.Noon.Add(2 * time.Minute))}, "namespace": {"shop"}}, &got)
	require.Len(t, got.Lanes, 1)
	got.Left = nil
	s.ask(t, "lanes", url.Values{"from": {millis(booktest.Noon.Add(-time.Minute))}, "to": {millis(booktest.Noon.Add(2 * time.Minute))}, "namespace": {"shop"}}, &got)
	require.Equal(t, map[string]int64{"leases.coordination.k8s.io": 1}, got.Left)
	got.Lanes = nil
	s.ask(t, "lanes", url.Values{"from": {"0"}, "to": {"1000"}, "namespace": {"shop"}}, &got)
	require.Empty(t, got.Lanes, "nothing lived before the record")
}

// Recovered deltas belong to the instant if they happened by then.
func TestTroubleWithinAPauseBelongsToItsInstant(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "pods", "web", "", running)
	stopped := b.Now
	b.Pause(time.Hour)
	broke := b.Delta(delta.Updated, delta.SourceWatch, "pods", "web", "", crashes)
	healed := b.Delta(delta.Updated, delta.SourceWatch, "pods", "web", "", running)
	again := b.Delta(delta.Updated, delta.SourceWatch, "pods", "web", "", crashes)
	broke.Occurred, healed.Occurred, again.Occurred = stopped.Add(10*time.Minute), stopped.Add(30*time.Minute), stopped.Add(40*time.Minute)
	b.Commit(broke, healed, again)
	s := served(t, b.DB, time.Minute)
	var got troubles
	s.ask(t, "trouble", url.Values{"at": {millis(stopped.Add(20 * time.Minute))}}, &got)
	require.Len(t, got.Items, 1)
	require.NotNil(t, got.Items[0].Since)
	require.Equal(t, int64(2), *got.Items[0].Since)
	var blame struct{ Lines []struct{ Path, Text string } }
	web := url.Values{"resource": {"pods"}, "namespace": {"shop"}, "name": {"web"}, "at": {millis(stopped.Add(20 * time.Minute))}}
	s.ask(t, "blame", web, &blame)
	found := false
	for _, l := range blame.Lines {
		found = found || l.Path == "/status/containerStatuses/0/state/waiting/reason"
	}
	require.True(t, found, "the lines come from the recovered version: %v", blame.Lines)
}

func TestTroubleLongAfterTheRecorderStoppedHasItsBeginning(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "pods", "web", "", running)
	b.Now = b.Now.Add(time.Minute)
	b.Watched(delta.Updated, "pods", "web", "", crashes)
	s := served(t, b.DB, time.Minute)
	for _, at := range []string{"now", millis(s.extent.LastAt.Add(48 * time.Hour))} {
		var got troubles
		s.ask(t, "trouble", url.Values{"at": {at}}, &got)
		require.Len(t, got.Items, 1)
		require.NotNil(t, got.Items[0].Since, at)
		require.Equal(t, s.extent.LastSeq, *got.Items[0].Since)
	}
}

func TestTroubleListsEveryObjectThatIsNotReady(t *testing.T) {
	b := booktest.NewShop(t)
	bad := `,"status":{"conditions":[{"type":"Ready","status":"False","reason":"NoQuota"}]}`
	b.List(b.Delta(delta.Sync, delta.SourceList, "things", "old", "", bad))
	b.Watched(delta.Added, "things", "new", "", bad)
	s := served(t, b.DB, time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Len(t, got.Items, 2)
	require.Equal(t, "NoQuota", got.named("new").Text)
	require.NotNil(t, got.named("new").Since)
	require.Nil(t, got.named("old").Since)
	require.Contains(t, got.named("old").Unknown, "first recorded")
}

func TestATroubleReportsAGapBeforeIt(t *testing.T) {
	b := booktest.NewShop(t)
	b.List(b.Delta(delta.Sync, delta.SourceList, "pods", "web", "", running))
	b.Now = booktest.Noon.Add(time.Minute)
	b.Commit(b.Interrupted("pods", "expired"))
	b.Now = booktest.Noon.Add(10 * time.Minute)
	b.Commit(b.Listed("pods", "expired", delta.SourceRelist))
	b.Now = booktest.Noon.Add(20 * time.Minute)
	b.Watched(delta.Updated, "pods", "web", "", crashes)
	s := served(t, b.DB, time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Len(t, got.Items, 1)
	require.NotNil(t, got.Items[0].Since)
	require.Contains(t, got.Items[0].Unknown, "may be missing")
}

func TestAnObjectListedBeforeItsOwnerIsOwned(t *testing.T) {
	b := booktest.NewShop(t)
	pod := b.Delta(delta.Sync, delta.SourceList, "pods", "web-1", booktest.Owned("Deployment", "deployments", "web"), running)
	lease := b.Delta(delta.Sync, delta.SourceList, "leases", "n1", booktest.Owned("Node", "nodes", "n1"), "")
	b.List(pod, lease, b.Delta(delta.Sync, delta.SourceList, "deployments", "web", "", ""), b.Delta(delta.Sync, delta.SourceList, "nodes", "n1", "", ""))
	s := served(t, b.DB, time.Minute)
	for name, owned := range map[string]string{"deployments-web": "web-1", "nodes-n1": "n1"} {
		var got related
		s.ask(t, "related", url.Values{"uid": {name}}, &got)
		require.Len(t, got.Owned, 1, name)
		require.Equal(t, owned, got.Owned[0].Name)
	}
}

func TestBlameIsRefusedForADeletedObject(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.Watched(delta.Deleted, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.Watched(delta.Added, "configmaps", "other", "", "")
	s := served(t, b.DB, time.Minute)
	status := s.refused(t, "blame", url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}, "at": {"seq:3"}})
	require.Equal(t, 404, int(status.Code), status.Message)
	var got struct{ Lines []struct{ Text string } }
	s.ask(t, "blame", url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}, "at": {"seq:1"}}, &got)
	require.NotEmpty(t, got.Lines)
}

func TestTheCommandOfAComparisonNamesItsObjects(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.Watched(delta.Updated, "configmaps", "settings", "", `,"data":{"n":"2"}`)
	s := served(t, b.DB, time.Minute)
	for _, test := range []struct {
		v    url.Values
		want string
	}{
		{url.Values{"uid": {"configmaps-settings"}}, "replay diff configmaps/settings -n shop --from seq:1 --to seq:2"},
		{url.Values{"resource": {"configmaps"}}, "replay diff configmaps -A --from seq:1 --to seq:2"},
		{url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}}, "replay diff configmaps/settings -n shop --from seq:1 --to seq:2"},
		{url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"set*"}}, ""},
		{url.Values{"namespace": {"shop", "other"}}, ""},
	} {
		test.v.Set("a", "seq:1")
		test.v.Set("b", "seq:2")
		var got compared
		s.ask(t, "compare", test.v, &got)
		require.Equal(t, test.want, got.Command)
	}
	for _, shape := range []string{"lanes", "compare"} {
		v := url.Values{"from": {"0"}, "to": {"1"}, "namespace": {""}}
		if shape == "compare" {
			v = url.Values{"a": {"seq:1"}, "namespace": {""}}
		}
		require.Contains(t, s.refused(t, shape, v).Message, "namespace is empty")
	}
}

// All troubles share the time for an answer.
func TestATroubleReportsThatTheTimeRanOut(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "deployments", "web", "", `,"spec":{"replicas":1}`)
	var items []postgres.Item
	for i := range 1500 {
		items = append(items, b.Delta(delta.Added, delta.SourceWatch, "configmaps", "c"+strconv.Itoa(i), "", ""))
	}
	b.Commit(items...)
	b.Watched(delta.Added, "pods", "web-1", booktest.Owned("Deployment", "deployments", "web"), crashes)
	var got troubles
	patient, hasty := served(t, b.DB, time.Minute), served(t, b.DB, time.Nanosecond)
	patient.ask(t, "trouble", patient.end(), &got)
	require.NotNil(t, got.named("web-1").FirstChange)
	require.Equal(t, "made", got.named("web-1").FirstChange.Text)
	got = troubles{}
	hasty.ask(t, "trouble", hasty.end(), &got)
	require.Nil(t, got.named("web-1").FirstChange)
	require.Contains(t, got.named("web-1").Unknown, "far enough")
}

// An object that was created again within a pause has its name from then on.
func TestANameWithinAPauseSelectsTheLifeOfTheInstant(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	stopped := b.Now
	b.Pause(time.Hour)
	gone := b.Delta(delta.Deleted, delta.SourceWatch, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	again := b.Delta(delta.Added, delta.SourceWatch, "configmaps", "settings", "", `,"data":{"n":"2"}`)
	again.Object.(*booktest.Object).Be("second")
	gone.Occurred, again.Occurred = stopped.Add(10*time.Minute), stopped.Add(20*time.Minute)
	b.Commit(gone, again)
	s := served(t, b.DB, time.Minute)
	settings := url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}}
	for after, want := range map[time.Duration]string{5 * time.Minute: "configmaps-settings", 30 * time.Minute: "second"} {
		settings.Set("at", millis(stopped.Add(after)))
		var got shown
		s.ask(t, "object", settings, &got)
		require.True(t, got.Exists)
		require.Equal(t, want, got.Object.UID, "%s after the pause began", after)
		var blame struct{ Object struct{ UID string } }
		s.ask(t, "blame", settings, &blame)
		require.Equal(t, want, blame.Object.UID)
	}
}

// A typed time is in the zone of the page's labels.
func TestATypedTimeIsInItsZone(t *testing.T) {
	s := newScene(t, time.Minute)
	seq := func(at, zone string) int64 {
		var got struct{ At struct{ Seq int64 } }
		s.ask(t, "instant", url.Values{"at": {at}, "zone": {zone}}, &got)
		return got.At.Seq
	}
	utc := seq("2026-11-25 13:18:15", "UTC")
	require.Positive(t, utc)
	require.Less(t, utc, s.extent.LastSeq)
	require.Equal(t, utc, seq("2026-11-25 14:18:15", "Europe/Berlin"))
	require.Equal(t, int64(7), seq("seq:7", "Asia/Tokyo"))
}

// A record without the commit that the page saw is another record. The tail reports that.
func TestTheTailReportsAnotherRecord(t *testing.T) {
	b := booktest.NewShop(t)
	b.List()
	b.Watched(delta.Added, "configmaps", "settings", "", "")
	s := served(t, b.DB, time.Minute)
	tail := func(head string) (got struct {
		Head  string
		Other bool
	}) {
		s.ask(t, "tail", url.Values{"head": {head}}, &got)
		return got
	}
	first := tail("")
	require.False(t, first.Other)
	b.Watched(delta.Added, "pods", "a", "", running)
	second := tail(first.Head)
	require.False(t, second.Other, "the record has grown")
	require.NotEqual(t, first.Head, second.Head)
	number, digest, _ := strings.Cut(second.Head, ":")
	for name, head := range map[string]string{
		"another digest": number + ":" + strings.Repeat("0", len(digest)), "a commit that is not there yet": "99:" + digest,
	} {
		require.True(t, tail(head).Other, name)
	}
}
