// Package capture keeps what a real API server serves as a data.Set: the raw bytes of a consistent list of everything, and of every
// watch event from there on. It takes nothing of the recorder, so that what the recorder is measured on is not its own view of things.
//
// # What it guarantees
//
// All lists are of one revision of etcd, at which all watches begin; so the Set has every version from there on, of each resource up to
// its last event. Events are in the order of their revisions. There are no gaps: a watch that ends is opened again at its last event, as where a
// definition was changed. If that is refused, or an error event comes, there is no Set.
//
// # Goroutines
//
// One for each resource; they have ended when Stop returns.
package capture

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/bench/data"
)

// A Capture is one that goes on.
type Capture struct {
	client *http.Client
	host   string
	dir    string
	first  []data.Event
	files  []string
	found  []data.Resource
	events atomic.Int64
	cancel context.CancelCauseFunc
	group  *errgroup.Group
}

// errStopped is the cause of watches that Stop has ended.
var errStopped = errors.New("capture stopped")

// Start lists everything that can be listed and watched, and watches it. Events are kept in files of a folder until Stop, which the caller calls.
func Start(ctx context.Context, config *rest.Config, dir string) (_ *Capture, err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	c := &Capture{client: client, host: strings.TrimSuffix(base.String(), "/"), dir: dir}
	if c.found, err = resources(config, client); err != nil {
		return nil, err
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	c.group, ctx = errgroup.WithContext(ctx)
	if err := c.begin(ctx); err != nil {
		c.cancel(err)
		return nil, errors.Join(err, c.wait())
	}
	return c, nil
}

// resources are those that can be listed and watched, one name of each.
func resources(config *rest.Config, client *http.Client) (all []data.Resource, err error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if gv.Group != "events.k8s.io" { // events of the core group, by another name
				all = append(all, data.Resource{Group: gv.Group, Version: gv.Version, Resource: r.Name, Kind: r.Kind, Namespaced: r.Namespaced})
			}
		}
	}
	slices.SortFunc(all, func(a, b data.Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return all, nil
}

func (c *Capture) begin(ctx context.Context) error {
	revision := ""
	for i, r := range c.found {
		events, at, err := c.list(ctx, i, r, revision)
		if err != nil {
			return fmt.Errorf("list of %s: %w", r.Resource, err)
		}
		revision = at // of the first list; the others are of the same
		c.first = append(c.first, events...)
	}
	for i, r := range c.found {
		if err := c.follow(ctx, i, r, revision); err != nil {
			return fmt.Errorf("watch of %s: %w", r.Resource, err)
		}
	}
	return nil
}

func (c *Capture) path(r data.Resource) string {
	if r.Group == "" {
		return "/api/" + r.APIVersion() + "/" + r.Resource
	}
	return "/apis/" + r.APIVersion() + "/" + r.Resource
}

func (c *Capture) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	for range reopens {
		if resp.StatusCode != http.StatusTooManyRequests {
			break
		}
		// An API server whose storage begins anew says so.
		if err := errors.Join(resp.Body.Close(), wait(ctx, resp.Header.Get("Retry-After"))); err != nil {
			return nil, err
		}
		if resp, err = c.client.Do(req); err != nil {
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, errors.Join(fmt.Errorf("%s: %s", resp.Status, text), err, resp.Body.Close())
	}
	return resp.Body, nil
}

// wait waits for as many seconds as a server has asked for, one if it has not said.
func wait(ctx context.Context, seconds string) error {
	n, err := strconv.Atoi(seconds)
	if err != nil {
		n = 1
	}
	timer := time.NewTimer(time.Duration(n) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pageSize is that of a list.
const pageSize = "500"

// list gives the objects of a resource at a revision, or, where none is named, at the present one.
func (c *Capture) list(ctx context.Context, i int, r data.Resource, revision string) (all []data.Event, at string, err error) {
	query := url.Values{"limit": {pageSize}}
	if revision != "" {
		query.Set("resourceVersion", revision)
		query.Set("resourceVersionMatch", "Exact")
	}
	now := time.Now().UTC()
	for {
		body, err := c.get(ctx, c.path(r), query)
		if err != nil {
			return nil, "", err
		}
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []json.RawMessage
		}
		err = json.NewDecoder(body).Decode(&page)
		if err = errors.Join(err, body.Close()); err != nil {
			return nil, "", err
		}
		for _, item := range page.Items {
			e, err := event(i, watch.Added, whole(r, item), now)
			if err != nil {
				return nil, "", err
			}
			all = append(all, e)
		}
		if page.Metadata.Continue == "" {
			return all, page.Metadata.ResourceVersion, nil
		}
		query = url.Values{"limit": {pageSize}, "continue": {page.Metadata.Continue}}
	}
}

// whole gives an item of a list the members that it lacks, as a watch has them.
func whole(r data.Resource, item json.RawMessage) []byte {
	if bytes.HasPrefix(item, []byte(`{"kind":`)) || bytes.HasPrefix(item, []byte(`{"apiVersion":`)) {
		return item
	}
	return append(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, r.Kind, r.APIVersion()), item[1:]...)
}

func event(i int, kind watch.EventType, object []byte, at time.Time) (e data.Event, err error) {
	var o struct {
		Metadata struct{ Namespace, Name, UID, ResourceVersion string }
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return e, err
	}
	rv, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return e, fmt.Errorf("resource version of %s: %w", o.Metadata.Name, err)
	}
	return data.Event{
		Resource: i, Type: kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, UID: o.Metadata.UID, RV: rv, At: at, Object: object,
	}, nil
}

// follow keeps the events of a resource in a file: a time in a line, and what the server has sent in the next.
func (c *Capture) follow(ctx context.Context, i int, r data.Resource, revision string) error {
	body, err := c.watch(ctx, r, revision)
	if err != nil {
		return err
	}
	name := filepath.Join(c.dir, strconv.Itoa(i))
	file, err := os.Create(name)
	if err != nil {
		return errors.Join(err, body.Close())
	}
	c.files = append(c.files, name)
	c.group.Go(func() error {
		out := bufio.NewWriterSize(file, 1<<20)
		err := fmt.Errorf("watch of %s: %w", r.Resource, c.keepAll(ctx, r, &sent{body: body, at: revision}, out))
		if errors.Is(context.Cause(ctx), errStopped) {
			err = nil
		}
		return errors.Join(err, out.Flush(), file.Close())
	})
	return nil
}

func (c *Capture) watch(ctx context.Context, r data.Resource, revision string) (io.ReadCloser, error) {
	return c.get(ctx, c.path(r), url.Values{"watch": {"true"}, "resourceVersion": {revision}, "timeoutSeconds": {"86400"}})
}

// sent is a watch, and the resource version up to which it was kept.
type sent struct {
	body io.ReadCloser
	at   string
}

// reopens is how often a watch may end, and how often a request may be put off: more often, something is wrong.
const reopens = 5

// keepAll opens a watch again that the server ended, where it ended. It returns why it cannot.
func (c *Capture) keepAll(ctx context.Context, r data.Resource, s *sent, out io.Writer) error {
	for range reopens {
		ended := errors.Join(c.keep(s, out), s.body.Close())
		if !errors.Is(ended, io.EOF) {
			return ended
		}
		body, err := c.watch(ctx, r, s.at)
		if err != nil {
			return errors.Join(ended, err)
		}
		s.body = body
	}
	return errors.Join(fmt.Errorf("it has ended %d times", reopens), s.body.Close())
}

// keep goes on until the watch ends.
func (c *Capture) keep(s *sent, out io.Writer) error {
	lines := bufio.NewReaderSize(s.body, 1<<20)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("it has ended: %w", err) // what came of the next event is not kept
		}
		var seen struct {
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := json.Unmarshal(text, &seen); err != nil {
			return err
		}
		s.at = seen.Object.Metadata.ResourceVersion
		if _, err := fmt.Fprintf(out, "%d\n%s", time.Now().UnixNano(), text); err != nil {
			return err
		}
		c.events.Add(1)
	}
}

// Events is how many were kept so far.
func (c *Capture) Events() int { return int(c.events.Load()) }

func (c *Capture) wait() error {
	err := c.group.Wait()
	c.client.CloseIdleConnections()
	return err
}

// Stop ends the watches and gives what they told. The Set reads the files of the folder.
func (c *Capture) Stop() (data.Set, error) {
	c.cancel(errStopped)
	if err := c.wait(); err != nil {
		return nil, err
	}
	s := &set{resources: c.found, first: c.first, files: c.files}
	for _, err := range s.Events() {
		if err != nil {
			return nil, err
		}
		s.events++
	}
	return s, nil
}
