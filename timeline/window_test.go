package timeline_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
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

// A gap that touches a window lets deltas be looked for until half an hour after its end. What they made is not of the window.
func TestAWindowEndsAtItsEndAlsoIfAGapTouchesIt(t *testing.T) {
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "pods", "web", "", running)
	b.commit(b.interrupted("configmaps", "expired"))
	b.now = noon.Add(10 * time.Minute)
	end := b.now
	b.commit(b.listed("configmaps", "expired", postgres.SourceRelist))
	b.now = noon.Add(12 * time.Minute)
	b.watched(postgres.Updated, "pods", "web", "", crashes)
	b.watched(postgres.Added, "pods", "later", "", crashes)
	b.now = noon.Add(time.Hour)
	b.watched(postgres.Updated, "pods", "web", "", running)
	s := b.scene(time.Minute)
	window := url.Values{"from": {millis(noon.Add(-time.Minute))}, "to": {millis(end)}, "namespace": {"shop"}}
	var got struct {
		Lanes []struct {
			Name, Trouble string
			ID            int64
		}
	}
	s.ask(t, "lanes", window, &got)
	require.Len(t, got.Lanes, 1, "the Pod that was made after the window is none of its lanes")
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
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "pods", "web", "", running)
	b.watched(postgres.Added, "leases", "leader", "", "")
	b.now = noon.Add(time.Hour)
	b.watched(postgres.Updated, "pods", "web", "", crashes)
	s := b.scene(time.Minute)
	var got laneList
	s.ask(t, "lanes", url.Values{"from": {millis(noon.Add(time.Minute))}, "to": {millis(noon.Add(2 * time.Minute))}, "namespace": {"shop"}}, &got)
	require.Len(t, got.Lanes, 1)
	got.Left = nil
	s.ask(t, "lanes", url.Values{"from": {millis(noon.Add(-time.Minute))}, "to": {millis(noon.Add(2 * time.Minute))}, "namespace": {"shop"}}, &got)
	require.Equal(t, map[string]int64{"leases.coordination.k8s.io": 1}, got.Left)
	got.Lanes = nil
	s.ask(t, "lanes", url.Values{"from": {"0"}, "to": {"1000"}, "namespace": {"shop"}}, &got)
	require.Empty(t, got.Lanes, "nothing lived before the record")
}

// Deltas that were caught up on belong to the instant if they happened by then.
func TestTroubleWithinAPauseIsOfItsInstant(t *testing.T) {
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "pods", "web", "", running)
	stopped := b.now
	b.pause(time.Hour)
	broke := b.delta(postgres.Updated, postgres.SourceWatch, "pods", "web", "", crashes)
	healed := b.delta(postgres.Updated, postgres.SourceWatch, "pods", "web", "", running)
	again := b.delta(postgres.Updated, postgres.SourceWatch, "pods", "web", "", crashes)
	broke.Occurred, healed.Occurred, again.Occurred = stopped.Add(10*time.Minute), stopped.Add(30*time.Minute), stopped.Add(40*time.Minute)
	b.commit(broke, healed, again)
	s := b.scene(time.Minute)
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
	require.True(t, found, "the lines are those of the version that was caught up on: %v", blame.Lines)
}

func TestTroubleHasWhateverSaysThatItIsNotReady(t *testing.T) {
	b := newBook(t)
	bad := `,"status":{"conditions":[{"type":"Ready","status":"False","reason":"NoQuota"}]}`
	b.list(b.delta(postgres.Sync, postgres.SourceList, "things", "old", "", bad))
	b.watched(postgres.Added, "things", "new", "", bad)
	s := b.scene(time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Len(t, got.Items, 2)
	require.Equal(t, "NoQuota", got.named("new").Text)
	require.NotNil(t, got.named("new").Since)
	require.Nil(t, got.named("old").Since)
	require.Contains(t, got.named("old").Unknown, "first recorded")
}

func TestAGapBeforeATroubleOfWhichNoChangeIsKnownIsSaid(t *testing.T) {
	b := newBook(t)
	b.list(b.delta(postgres.Sync, postgres.SourceList, "pods", "web", "", running))
	b.now = noon.Add(time.Minute)
	b.commit(b.interrupted("pods", "expired"))
	b.now = noon.Add(10 * time.Minute)
	b.commit(b.listed("pods", "expired", postgres.SourceRelist))
	b.now = noon.Add(20 * time.Minute)
	b.watched(postgres.Updated, "pods", "web", "", crashes)
	s := b.scene(time.Minute)
	var got troubles
	s.ask(t, "trouble", s.end(), &got)
	require.Len(t, got.Items, 1)
	require.NotNil(t, got.Items[0].Since)
	require.Contains(t, got.Items[0].Unknown, "may be missing")
}

func TestWhatWasListedBeforeItsOwnerIsOwned(t *testing.T) {
	b := newBook(t)
	pod := b.delta(postgres.Sync, postgres.SourceList, "pods", "web-1", owned("Deployment", "deployments", "web"), running)
	lease := b.delta(postgres.Sync, postgres.SourceList, "leases", "n1", owned("Node", "nodes", "n1"), "")
	b.list(pod, lease, b.delta(postgres.Sync, postgres.SourceList, "deployments", "web", "", ""), b.delta(postgres.Sync, postgres.SourceList, "nodes", "n1", "", ""))
	s := b.scene(time.Minute)
	for name, owned := range map[string]string{"deployments-web": "web-1", "nodes-n1": "n1"} {
		var got shown
		s.ask(t, "object", url.Values{"uid": {name}}, &got)
		require.Len(t, got.Owned, 1, name)
		require.Equal(t, owned, got.Owned[0].Name)
	}
}

func TestBlameIsOfWhatLives(t *testing.T) {
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.watched(postgres.Deleted, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.watched(postgres.Added, "configmaps", "other", "", "")
	s := b.scene(time.Minute)
	status := s.refused(t, "blame", url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}, "at": {"seq:3"}})
	require.Equal(t, 404, int(status.Code), status.Message)
	var got struct{ Lines []struct{ Text string } }
	s.ask(t, "blame", url.Values{"resource": {"configmaps"}, "namespace": {"shop"}, "name": {"settings"}, "at": {"seq:1"}}, &got)
	require.NotEmpty(t, got.Lines)
}

func TestTheCommandOfAComparisonNamesItsObjects(t *testing.T) {
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	b.watched(postgres.Updated, "configmaps", "settings", "", `,"data":{"n":"2"}`)
	s := b.scene(time.Minute)
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

// All troubles share the time that an answer may take.
func TestATroubleSaysIfTheChangeBeforeWasNotReachedInTime(t *testing.T) {
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "deployments", "web", "", `,"spec":{"replicas":1}`)
	var items []postgres.Item
	for i := range 1500 {
		items = append(items, b.delta(postgres.Added, postgres.SourceWatch, "configmaps", "c"+strconv.Itoa(i), "", ""))
	}
	b.commit(items...)
	b.watched(postgres.Added, "pods", "web-1", owned("Deployment", "deployments", "web"), crashes)
	var got troubles
	patient, hasty := b.scene(time.Minute), b.scene(time.Nanosecond)
	patient.ask(t, "trouble", patient.end(), &got)
	require.NotNil(t, got.named("web-1").FirstChange)
	require.Equal(t, "made", got.named("web-1").FirstChange.Text)
	got = troubles{}
	hasty.ask(t, "trouble", hasty.end(), &got)
	require.Nil(t, got.named("web-1").FirstChange)
	require.Contains(t, got.named("web-1").Unknown, "far enough")
}

// An object that was made anew within a pause has its name from then on.
func TestANameWithinAPauseIsOfTheLifeOfTheInstant(t *testing.T) {
	b := newBook(t)
	b.list()
	b.watched(postgres.Added, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	stopped := b.now
	b.pause(time.Hour)
	gone := b.delta(postgres.Deleted, postgres.SourceWatch, "configmaps", "settings", "", `,"data":{"n":"1"}`)
	anew := b.delta(postgres.Added, postgres.SourceWatch, "configmaps", "settings", "", `,"data":{"n":"2"}`)
	anew.Object.(*served).uid = "second"
	anew.Object.(*served).doc = patch.Doc(strings.Replace(string(anew.Object.(*served).doc), "configmaps-settings", "second", 1))
	gone.Occurred, anew.Occurred = stopped.Add(10*time.Minute), stopped.Add(20*time.Minute)
	b.commit(gone, anew)
	s := b.scene(time.Minute)
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
