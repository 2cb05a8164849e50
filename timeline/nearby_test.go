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

type around struct {
	Rows []struct {
		Kind, Name, Link, Type string
		Changes                []struct{ Path string }
	}
	Others []struct {
		Kind, Name string
	}
	RowsTotal   int
	OthersTotal int
	Unknown     string
	Command     string
}

// links returns the rows in their order, each as "Kind/name: link".
func (a *around) links() (all []string) {
	for _, r := range a.Rows {
		all = append(all, r.Kind+"/"+r.Name+": "+r.Link)
	}
	return all
}

// village writes a namespace with two Deployments and the objects that they name. The changes have the order of the code.
func village(b *booktest.Shop) {
	app := func(name, config string) string {
		return `,"kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"` + name + `"}},"template":{"spec":{"configMap":"` + config + `"}}}`
	}
	b.List(
		b.Delta(delta.Sync, delta.SourceList, "deployments", "web", "", app("web", "settings-1")),
		b.Delta(delta.Sync, delta.SourceList, "deployments", "cart", "", app("cart", "settings-2")),
		b.Delta(delta.Sync, delta.SourceList, "pods", "web-1", booktest.Owned("Deployment", "deployments", "web"), `,"spec":{"nodeName":"node-7"},"status":{"phase":"Running","conditions":[{"message":"exceeded: budget-9"}]}`),
		b.Delta(delta.Sync, delta.SourceList, "pods", "cart-1", booktest.Owned("Deployment", "deployments", "cart"), `,"spec":{"nodeName":"node-8"}`),
		b.Delta(delta.Sync, delta.SourceList, "configmaps", "settings-1", "", `,"data":{"a":"1"}`),
		b.Delta(delta.Sync, delta.SourceList, "configmaps", "settings-2", "", `,"data":{"a":"1"}`),
		b.Delta(delta.Sync, delta.SourceList, "configmaps", "budget-9", "", `,"data":{"a":"1"}`),
		b.Delta(delta.Sync, delta.SourceList, "configmaps", "rights", "", `,"data":{"a":"1"}`),
		b.Delta(delta.Sync, delta.SourceList, "things", "grant", "", `,"spec":{"of":"rights","to":["user:settings-1"],"with":"cart"}`),
		b.Delta(delta.Sync, delta.SourceList, "nodes", "node-7", "", `,"spec":{}`),
		b.Delta(delta.Sync, delta.SourceList, "nodes", "node-8", "", `,"spec":{}`),
	)
	at := func(resource, name, metadata, fields string) {
		b.Now = b.Now.Add(time.Minute)
		b.Watched(delta.Updated, resource, name, metadata, fields)
	}
	at("deployments", "web", "", app("web", "settings-1")[:len(app("web", "settings-1"))-1]+`,"replicas":2}`)
	at("configmaps", "budget-9", "", `,"data":{"a":"2"}`)
	at("configmaps", "settings-1", "", `,"data":{"a":"2"}`)
	at("configmaps", "settings-2", "", `,"data":{"a":"2"}`)
	at("configmaps", "rights", "", `,"data":{"a":"2"}`)
	at("nodes", "node-7", "", `,"spec":{"unschedulable":true}`)
	at("nodes", "node-8", "", `,"spec":{"unschedulable":true}`)
	at("deployments", "cart", "", app("cart", "settings-2")[:len(app("cart", "settings-2"))-1]+`,"replicas":2}`)
	at("pods", "web-1", booktest.Owned("Deployment", "deployments", "web"), `,"spec":{"nodeName":"node-7","x":1},"status":{"phase":"Running","conditions":[{"message":"exceeded: budget-9"}]}`)
	at("things", "grant", `"labels":{"seen":"yes"},`, `,"spec":{"of":"rights","to":["user:settings-1"],"with":"cart"}`)
	b.Now = b.Now.Add(time.Minute)
}

func near(s *scene, name string) url.Values {
	v := s.end()
	v.Set("resource", "deployments.apps")
	v.Set("namespace", "shop")
	v.Set("name", name)
	return v
}

func TestNearbyListsChangesOfLinkedObjects(t *testing.T) {
	b := booktest.NewShop(t)
	village(b)
	s := served(t, b.DB, time.Minute)
	var web, cart around
	s.ask(t, "nearby", near(s, "web"), &web)
	require.Equal(t, []string{
		"ConfigMap/budget-9: a condition names it",
		"Node/node-7: the object names it",
		"ConfigMap/rights: Thing grant names it",
		"ConfigMap/settings-1: the object names it",
		"Deployment/web: the object itself",
		"Thing/grant: it names ConfigMap settings-1",
	}, web.links(), "objects that a condition names come first, and metadata last")
	require.Equal(t, len(web.Rows), web.RowsTotal)
	require.Equal(t, 3, web.OthersTotal, "the other Node, the other settings, and the other Deployment: %v", web.Others)
	require.Empty(t, web.Unknown)
	require.True(t, strings.HasPrefix(web.Command, "replay log -n shop --since "), web.Command)
	s.ask(t, "nearby", near(s, "cart"), &cart)
	require.Contains(t, cart.links(), "Thing/grant: it names the object")
	require.NotContains(t, strings.Join(cart.links(), " "), "node-7")
}

func TestNearbySuggestsNoCauseIfChangesMayBeMissing(t *testing.T) {
	b := booktest.NewShop(t)
	village(b)
	b.Commit(b.Interrupted("configmaps", "expired"))
	b.Now = b.Now.Add(2 * time.Minute)
	b.Commit(
		b.Delta(delta.Sync, "relist", "configmaps", "settings-1", "", `,"data":{"a":"3"}`),
		b.Listed("configmaps", "expired", "relist"))
	s := served(t, b.DB, time.Minute)
	var lost, found around
	s.ask(t, "nearby", near(s, "web"), &lost)
	require.Equal(t, "ConfigMap/settings-1: the object names it", lost.links()[1])
	require.Equal(t, "Changes of configmaps from 12:05:00 to 12:13:00 may be missing (expired): what came before the instant is not known.", lost.Unknown)

	b.Now = b.Now.Add(time.Minute)
	b.Watched(delta.Updated, "configmaps", "settings-1", "", `,"data":{"a":"4"}`)
	s = served(t, b.DB, time.Minute)
	s.ask(t, "nearby", near(s, "web"), &found)
	require.Empty(t, found.Unknown, "nothing is missing since the newest change")
	v := near(s, "web")
	v.Set("back", "1000")
	var short around
	s.ask(t, "nearby", v, &short)
	require.Len(t, short.Rows, 1)
}

func TestNearbyCutsALongListAndCountsIt(t *testing.T) {
	b := booktest.NewShop(t)
	b.List(b.Delta(delta.Sync, delta.SourceList, "deployments", "web", "", `,"spec":{}`))
	for n := range 250 {
		b.Now = b.Now.Add(time.Second)
		b.Watched(delta.Updated, "deployments", "web", "", `,"spec":{"replicas":`+strconv.Itoa(n)+`}`)
	}
	s := served(t, b.DB, time.Minute)
	var got around
	s.ask(t, "nearby", near(s, "web"), &got)
	require.Len(t, got.Rows, 200)
	require.Equal(t, 250, got.RowsTotal)
}
