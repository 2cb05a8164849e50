package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// outage returns a record with a pause from 12:01 to 12:20. In the pause, a scale and a delete happen without proved times.
// The objects created before and after them have proved times, at the given minutes.
func outage(t *testing.T, before, after string) *book {
	t.Helper()
	b := newBook(t)
	for _, resource := range []string{"deployments", "configmaps", "secrets", "nodes"} {
		b.listed(resource, "first_list", delta.SourceList, delta.Marker{})
	}
	b.at("12:01")
	b.write(delta.Added, "deployments", b.web(webUID, "helm", 3, "nginx:2", ""))
	b.write(delta.Added, "configmaps", b.object("configmaps", "shop", "settings", settingsUID, "helm", "", `,"data":{}`))
	stopped := b.Now
	b.Close()
	b.at("12:20")
	started := b.Now
	b.Open()

	made := func(clock, name, uid string) postgres.Item {
		b.at(clock)
		o := b.object("configmaps", "shop", name, uid, "helm", fmt.Sprintf(`"creationTimestamp":%q,`, b.Now.Format(time.RFC3339)), `,"data":{}`)
		return b.late(delta.Added, "configmaps", o, b.Now)
	}
	first := made(before, "first", oldUID)
	b.Now = stopped // a managed field of a scale has no time, so the newest time is older
	scaled := b.late(delta.Updated, "deployments", b.web(webUID, "hpa", 5, "nginx:2", ""), stopped)
	deleted := b.late(delta.Deleted, "configmaps", b.object("configmaps", "shop", "settings", settingsUID, "helm", "", `,"data":{}`), started)
	again := made(after, "settings", secondUID)
	b.at("12:21")
	b.Commit(first, scaled, deleted, again)
	return b
}

// late returns a delta on which the recorder catches up.
func (b *book) late(kind delta.Type, resource string, o *booktest.Object, occurred time.Time) postgres.Item {
	it := b.Item(resource, kind, delta.SourceWatch, o)
	it.Occurred = occurred
	return it
}

func TestTheLogPlacesAChangeInAPauseByResourceVersion(t *testing.T) {
	b := outage(t, "12:10", "12:11")
	got := b.replayed(t, "log", "-n", "shop", "--since", "2026-03-10T12:05:00Z", "--until", "2026-03-10T12:15:00Z", "--utc")
	require.Zero(t, got.code, got.err)
	var lines []string
	for line := range strings.Lines(got.out) {
		if strings.HasPrefix(line, "~") {
			lines = append(lines, strings.Join(strings.Fields(line)[:4], " "))
		}
	}
	require.Equal(t, []string{
		"~2026-03-10T12:10:00.000Z Added ConfigMap shop/first",
		"~2026-03-10T12:10:00.000Z Updated Deployment shop/web",
		"~2026-03-10T12:11:00.000Z Deleted ConfigMap shop/settings",
		"~2026-03-10T12:11:00.000Z Added ConfigMap shop/settings",
	}, lines)

	got = b.replayed(t, "log", "deployment/web", "-n", "shop", "--since", "2026-03-10T12:05:00Z", "-o", "json")
	require.Zero(t, got.code, got.err)
	line := got.out[strings.Index(got.out, `{"cluster"`):]
	var entry map[string]any
	require.NoError(t, json.NewDecoder(strings.NewReader(line)).Decode(&entry))
	require.Equal(t, []any{"2026-03-10T12:10:00Z", "2026-03-10T12:10:00Z", "2026-03-10T12:11:01Z"},
		[]any{entry["occurredAt"], entry["notBefore"], entry["notAfter"]})

	got = b.replayed(t, "log", "-n", "shop", "--since", "2026-03-10T12:01:30Z", "--until", "2026-03-10T12:05:00Z")
	require.Zero(t, got.code, got.err)
	require.NotContains(t, got.out, "~", "no change is before the first creation")
}

func TestEveryAnswerPlacesAChangeInAPauseByResourceVersion(t *testing.T) {
	b := outage(t, "12:10", "12:11")
	b.at("12:22")
	b.write(delta.Deleted, "deployments", b.web(webUID, "helm", 5, "nginx:2", ""))

	got := b.replayed(t, "blame", "deployment/web", "-n", "shop", "--utc", "--at", "seq:5")
	require.Zero(t, got.code, got.err)
	require.Contains(t, blamed(t, got.out, "replicas: 5"), " ~2026-03-10 12:10:00 ")
	got = b.replayed(t, "blame", "deployment/web", "-n", "shop", "--at", "seq:5", "-o", "json")
	require.Contains(t, got.out, `"occurredAt":"2026-03-10T12:10:00Z","estimated":true,"notBefore":"2026-03-10T12:10:00Z","notAfter":"2026-03-10T12:11:01Z"`)

	got = b.replayed(t, "log", "deployment/web", "-n", "shop", "--utc")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "deleted; last proved writer hpa at ~12:10:00.000\n")
	got = b.replayed(t, "log", "deployment/web", "-n", "shop", "-o", "json")
	require.Contains(t, got.out, `"occurredAt":"2026-03-10T12:10:00Z","estimated":true}`)

	got = b.replayed(t, "get", "configmap/settings", "-n", "shop", "--at", "seq:5", "-o", "name")
	require.Contains(t, got.err, `not found: deleted at ~2026-03-10T12:11:00Z, by seq:5;`)
}

func TestARolloutInAPauseHasTheTimesOfItsDeltas(t *testing.T) {
	b := rolledOut(t, "12:10", "12:11")
	got := b.replayed(t, "story", "deployment/web", "-n", "shop", "--utc")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "\n~12:10:00.000  Deployment web  spec.template.spec.containers[web].image nginx:2 → nginx:3  [kubectl-set]\n")
	require.Contains(t, got.out, "\n~12:10:00.000  spec.containers[web].image nginx:2 → nginx:3  [kubectl-set]\n               replaced after 1m0s\n")
	got = b.replayed(t, "story", "deployment/web", "-n", "shop", "-o", "json")
	require.Contains(t, got.out, `"occurredAt":"2026-03-10T12:10:00Z","estimated":true,"notBefore":"2026-03-10T12:10:00Z","notAfter":"2026-03-10T12:11:01Z"`)

	got = rolledOut(t, "12:15", "12:05").replayed(t, "story", "deployment/web", "-n", "shop", "--utc")
	require.Contains(t, got.out, "\n?12:01:00.000  spec.containers[web].image nginx:2 → nginx:3  [kubectl-set]\n", "clocks of servers contradict the order")
}

// rolledOut returns a record with a pause. In the pause, the image changes between two creations at the given minutes, and
// once more after them.
func rolledOut(t *testing.T, before, after string) *book {
	t.Helper()
	b := newBook(t)
	for _, resource := range []string{"deployments", "configmaps", "secrets", "nodes"} {
		b.listed(resource, "first_list", delta.SourceList, delta.Marker{})
	}
	b.at("12:01")
	b.write(delta.Added, "deployments", b.web(webUID, "helm", 3, "nginx:2", ""))
	stopped := b.Now
	b.Close()
	b.at("12:20")
	b.Open()
	made := func(clock, name, uid string) postgres.Item {
		b.at(clock)
		o := b.object("configmaps", "shop", name, uid, "helm", fmt.Sprintf(`"creationTimestamp":%q,`, b.Now.Format(time.RFC3339)), `,"data":{}`)
		return b.late(delta.Added, "configmaps", o, b.Now)
	}
	image := func(manager, image string) postgres.Item {
		b.Now = stopped // a managed field of that time proves nothing
		return b.late(delta.Updated, "deployments", b.web(webUID, manager, 3, image, ""), stopped)
	}
	items := []postgres.Item{made(before, "first", oldUID), image("kubectl-set", "nginx:3"), made(after, "second", secondUID), image("helm", "nginx:4")}
	b.at("12:21")
	b.Commit(items...)
	return b
}

func TestAnAnswerInAPauseFollowsResourceVersions(t *testing.T) {
	b := outage(t, "12:10", "12:11")
	for at, want := range map[string]string{"12:05": "3", "12:10": "5"} {
		got := b.replayed(t, "get", "deployment", "web", "-n", "shop", "--at", "2026-03-10T"+at+":00Z", "-o", "jsonpath={.spec.replicas}")
		require.Zero(t, got.code, got.err)
		require.Equal(t, want, got.out, "at %s", at)
	}
}

func TestTheLogMarksATimeThatClocksOfServersContradict(t *testing.T) {
	b := outage(t, "12:15", "12:05")
	got := b.replayed(t, "log", "-n", "shop", "--since", "2026-03-10T12:02:00Z", "--utc")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "?2026-03-10T12:01:00.000Z  Updated", "the time is the recorded estimate")
	require.Contains(t, got.out, "?2026-03-10T12:20:00.000Z  Deleted")
	got = b.replayed(t, "get", "configmaps", "-n", "shop", "--at", "2026-03-10T12:10:00Z")
	require.Contains(t, got.err, "clocks of servers contradict the order of resource versions")
}
