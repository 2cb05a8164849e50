package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/apiserver"
)

// A client follows one resource at the end of the record, as an informer does: it lists, watches from there, and lists again after 410. Sometimes
// its connection drops. It then watches from the last version.
type client struct {
	*past
	resource, selector string
	watchList          bool // it starts with a watch that sends initial events
	random             *rand.Rand

	objects map[string]string // versions by key
	rv      string            // the last version that it saw
	lists   int
	drops   int
	err     error

	mu    sync.Mutex
	known int           // rv, for other goroutines
	moved chan struct{} // closed and replaced when known has moved
}

func (p *past) client(seed uint64, resource, selector string, watchList bool) *client {
	return &client{past: p, resource: resource, selector: selector, watchList: watchList, random: rand.New(rand.NewPCG(seed, 2)), moved: make(chan struct{})}
}

// saw notes a version. Versions of one resource only grow.
func (c *client) saw(rv string) error {
	next, err := strconv.Atoi(rv)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if next < c.known {
		return fmt.Errorf("%s: resource version %d comes after %d", c.resource, next, c.known)
	}
	c.rv, c.known = rv, next
	close(c.moved)
	c.moved = make(chan struct{})
	return nil
}

// await returns when the client has seen a version.
func (c *client) await(ctx context.Context, version int) {
	for {
		c.mu.Lock()
		known, moved := c.known, c.moved
		c.mu.Unlock()
		if known >= version {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// run lists and watches until ctx ends. An error of its own stops the others.
func (c *client) run(ctx context.Context, stop context.CancelFunc) {
	defer stop()
	for ctx.Err() == nil && c.err == nil {
		c.lists++
		if !c.watchList {
			if c.err = c.list(ctx); c.err != nil {
				break
			}
		}
		for again := true; again && ctx.Err() == nil && c.err == nil; {
			again, c.err = c.watchOn(ctx)
		}
	}
	if ctx.Err() != nil {
		c.err = nil
	}
}

func (c *client) get(ctx context.Context, query string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.URL+c.root+"/api/v1/"+c.resource+"?labelSelector="+c.selector+query, nil)
	if err != nil {
		return nil, err
	}
	return c.server.Client().Do(r)
}

// list requests a state that is not older than the client's.
func (c *client) list(ctx context.Context) error {
	query := ""
	if c.rv != "" {
		query = "&resourceVersionMatch=NotOlderThan&resourceVersion=" + c.rv
	}
	response, err := c.get(ctx, query)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var l struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata meta }
	}
	if err := json.NewDecoder(response.Body).Decode(&l); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("list %s: %s, %w", c.resource, response.Status, err)
	}
	c.objects = map[string]string{}
	for _, item := range l.Items {
		c.objects[item.Metadata.key()] = item.Metadata.ResourceVersion
	}
	return c.saw(l.Metadata.ResourceVersion)
}

type meta struct {
	Name, Namespace, ResourceVersion string
	Annotations                      map[string]string
}

func (m *meta) key() string { return m.Namespace + "/" + m.Name }

// watchOn watches from the last version. It returns again if the connection drops, and an error if the watch ends with one.
func (c *client) watchOn(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := "&watch=1&allowWatchBookmarks=true&resourceVersion=" + c.rv
	initial := c.watchList && c.objects == nil
	if initial {
		query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		c.objects = map[string]string{}
	}
	response, err := c.get(ctx, query)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusGone:
		c.objects = nil
		return false, nil
	case response.StatusCode != http.StatusOK:
		text, err := io.ReadAll(response.Body)
		return false, fmt.Errorf("watch %s: %s, %w", c.resource, text, err)
	}
	drop := 5 + c.random.IntN(60)
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		var e struct {
			Type   string
			Object struct {
				Code     int
				Metadata meta
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return false, err
		}
		m := &e.Object.Metadata
		switch {
		case e.Type == "ERROR" && e.Object.Code == http.StatusGone:
			c.objects = nil
			return false, nil
		case e.Type == "BOOKMARK":
			initial = initial && m.Annotations["k8s.io/initial-events-end"] != "true"
			err = c.saw(m.ResourceVersion)
		case initial && e.Type == "ADDED":
			c.objects[m.key()] = m.ResourceVersion
		default:
			err = c.apply(e.Type, m)
		}
		if err != nil {
			return false, err
		}
		if drop--; drop < 0 && !initial {
			c.drops++
			return true, nil
		}
	}
	return false, fmt.Errorf("watch %s: %w", c.resource, lines.Err())
}

// apply applies one event, which must follow from the client's objects.
func (c *client) apply(kind string, m *meta) error {
	known, there := c.objects[m.key()]
	switch {
	case kind == "ADDED" && !there, kind == "MODIFIED" && there:
		c.objects[m.key()] = m.ResourceVersion
	case kind == "DELETED" && there:
		delete(c.objects, m.key())
	default:
		return fmt.Errorf("%s %s %s at %s, but known is %q", kind, c.resource, m.key(), m.ResourceVersion, known)
	}
	if m.ResourceVersion == c.rv {
		return fmt.Errorf("%s %s %s came twice, at %s", kind, c.resource, m.key(), m.ResourceVersion)
	}
	return c.saw(m.ResourceVersion)
}

func TestAClientThatListsAndWatchesHoldsTheEndOfTheRecord(t *testing.T) {
	pen := newPen(t)
	pen.end()
	live := serveLive(t, pen)
	var clients []*client
	for i, r := range penResources {
		for j, selector := range []string{"", "", "side%3Dl"} {
			clients = append(clients, live.client(uint64(10*i+j), r.resource, selector, j == 1))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() { c.run(ctx, stop) })
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 13 {
		pen.scribble(random)
		pen.end()
		for i, c := range clients {
			c.await(ctx, pen.ends[i/3])
		}
	}
	stop()
	running.Wait()
	for _, c := range clients {
		require.NoError(t, c.err)
	}
	lists, drops := 0, 0
	extent, err := live.record.Extent(t.Context())
	require.NoError(t, err)
	then := *live
	then.root = apiserver.Path(live.record.Cluster().UID, extent.LastSeq)
	for _, c := range clients {
		end := then.client(0, c.resource, c.selector, false)
		require.NoError(t, end.list(t.Context()))
		require.Equal(t, end.objects, c.objects, "%s, selected by %q", c.resource, c.selector)
		lists, drops = lists+c.lists, drops+c.drops
	}
	for i := range penResources {
		all := pen.AllLive(pen.of(i))
		for _, o := range all {
			require.Equal(t, o.RV, clients[3*i].objects[o.Key()], "%s %s", penResources[i].resource, o.Key())
		}
		require.Len(t, clients[3*i].objects, len(all))
	}
	require.Greater(t, lists, 2*len(clients), "gaps made clients list again")
	require.Greater(t, drops, len(clients), "connections dropped")
	t.Logf("%d deltas, %d clients, %d lists, %d connections dropped", extent.LastSeq, len(clients), lists, drops)
}

// scribble writes some random commits, and sometimes a gap that a list closes.
func (p *pen) scribble(random *rand.Rand) {
	p.Helper()
	for range 1 + random.IntN(12) {
		var items []penItem
		for range 1 + random.IntN(8) {
			items = append(items, p.change(random, random.IntN(len(p.Names()))))
		}
		p.commit(items...)
	}
	if random.IntN(2) != 0 {
		return
	}
	stream := random.IntN(len(p.Names()))
	p.interrupt(stream)
	var rows []penItem
	for _, name := range []string{"a/o1", "a/o2", "b/o3"} {
		switch o := p.Live(p.of(stream), name); {
		case o != nil && random.IntN(2) == 0:
			rows = append(rows, p.vanished(stream, o))
		case random.IntN(2) == 0:
			rows = append(rows, p.listed(stream, name[:1], name[2:], "l7"))
		}
	}
	if len(rows) > 1 { // a list can take several commits
		p.commit(rows[0])
		rows = rows[1:]
		p.commit(p.set((stream+1)%len(p.Names()), "a", "o4", "r1"))
	}
	p.RV++
	p.list(stream, "expired", rows...)
}

// end writes a last object to each resource, which every client sees.
func (p *pen) end() {
	p.Helper()
	var items []penItem
	p.ends = nil
	for i := range p.Names() {
		items = append(items, p.set(i, "c", "end", "l"+strconv.Itoa(p.RV)))
		p.ends = append(p.ends, p.RV)
	}
	p.commit(items...)
}
