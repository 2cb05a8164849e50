package badinput_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

// resource is one resource of the server, with the history of its objects.
type resource struct {
	group, version, plural, kind string

	lists, watches faults
	server         *server

	// Protected by the server's lock.
	history   []event
	compacted int // history up to here is gone
	watching  int // watches that are being served
	added     []string
	listRV    func(rv int) string
}

// event is one change of one object.
type event struct {
	rv   int
	kind string // ADDED, MODIFIED, DELETED
	name string
	text string // of the object, whole
}

// version is an event as it should stand in the record.
type version struct {
	Type, Namespace, Name, UID, RV string
	Doc                            string
}

func configMaps() *resource { return &resource{version: "v1", plural: "configmaps", kind: "ConfigMap"} }

// readings are of an aggregated API.
func readings() *resource {
	return &resource{group: "metrics.example", version: "v1beta1", plural: "readings", kind: "Reading"}
}

func (r *resource) groupVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

func (r *resource) path() string {
	if r.group == "" {
		return "/api/" + r.version + "/" + r.plural
	}
	return "/apis/" + r.groupVersion() + "/" + r.plural
}

// write appends to the history what make makes of the next resource version. The text lacks nothing of an object.
func (r *resource) write(kind, name string, text func(rv int) string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.rv++
	r.history = append(r.history, event{rv: r.server.rv, kind: kind, name: name, text: text(r.server.rv)})
	r.server.changed()
}

// changed is called with the lock held.
func (s *server) changed() {
	close(s.news)
	s.news = make(chan struct{})
}

// object is an ordinary one, with more members after its metadata.
func (r *resource) object(name, uid, members string) func(rv int) string {
	return func(rv int) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":"%d"}%s}`,
			r.groupVersion(), r.kind, name, uid, rv, members)
	}
}

// life writes and updates one ordinary object.
type life struct {
	r         *resource
	name, uid string
	n         int
}

// create begins a life.
func (r *resource) create(name string) *life {
	l := &life{r: r, name: name, uid: uuid.NewString()}
	r.write("ADDED", name, l.next())
	return l
}

func (l *life) next() func(int) string {
	l.n++
	return l.r.object(l.name, l.uid, fmt.Sprintf(`,"data":{"n":"%d"}`, l.n))
}

func (l *life) update(times int) {
	for range times {
		l.r.write("MODIFIED", l.name, l.next())
	}
}

func (l *life) delete() { l.r.write("DELETED", l.name, l.next()) }

// compact forgets the history up to now.
func (r *resource) compact() {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.compacted = r.server.rv
}

func (r *resource) serve(w http.ResponseWriter, q *http.Request) {
	if q.URL.Query().Get("watch") == "" {
		r.lists.or(w, q, r.serveList)
		return
	}
	r.watches.or(w, q, r.serveWatch)
}

// living are the newest versions of what has not been deleted, at most up to rv.
func (r *resource) living(rv int) []event {
	var living []event
	for _, e := range r.history {
		if e.rv > rv {
			break
		}
		for i := range living {
			if living[i].name == e.name {
				living = append(living[:i:i], living[i+1:]...)
				break
			}
		}
		if e.kind != "DELETED" {
			living = append(living, e)
		}
	}
	return living
}

// serveList has items without apiVersion and kind, as API servers send them.
func (r *resource) serveList(w http.ResponseWriter, _ *http.Request) {
	r.server.mu.Lock()
	items := append([]string(nil), r.added...)
	rv := strconv.Itoa(r.server.rv)
	if r.listRV != nil {
		rv = r.listRV(r.server.rv)
	}
	for _, e := range r.living(r.server.rv) {
		items = append(items, strings.Replace(e.text, fmt.Sprintf(`"apiVersion":%q,"kind":%q,`, r.groupVersion(), r.kind), "", 1))
	}
	r.server.mu.Unlock()
	answer(w, http.StatusOK, fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[%s]}`,
		r.kind, r.groupVersion(), rv, strings.Join(items, ",")))
}

func (r *resource) serveWatch(w http.ResponseWriter, q *http.Request) {
	r.count(1)
	defer r.count(-1)
	r.stream(w, q, func(_ int, e event) bool {
		send(w, e.frame())
		return true
	})
}

func (r *resource) count(watches int) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.watching += watches
	r.server.changed()
}

// awaitWatch returns when the recorder watches the resource.
func (r *resource) awaitWatch(t *testing.T, by *recording) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.server.mu.Lock()
		watching, news := r.watching, r.server.news
		r.server.mu.Unlock()
		if watching > 0 {
			return
		}
		select {
		case <-news:
		case <-by.done:
			t.Fatalf("the recorder ended (%v) and did not watch %s", by.err, r.plural)
		case <-deadline:
			t.Fatalf("%s are not watched", r.plural)
		}
	}
}

// stream gives each event to each, with its number in this watch, from where the client is to where each returns false.
func (r *resource) stream(w http.ResponseWriter, q *http.Request, each func(n int, e event) bool) {
	at, err := strconv.Atoi(q.URL.Query().Get("resourceVersion"))
	if err != nil {
		refuse(http.StatusBadRequest, "BadRequest", "invalid resource version", 0)(w, q)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for n := 0; ; {
		events, news, gone := r.after(at)
		if gone {
			send(w, expired)
			return
		}
		for _, e := range events {
			if !each(n, e) {
				return
			}
			at = e.rv
			n++
		}
		_ = http.NewResponseController(w).Flush() // the client may be gone
		select {
		case <-news:
		case <-q.Context().Done():
			return
		}
	}
}

// after are the events after a resource version, and the channel of new ones.
func (r *resource) after(rv int) (events []event, news <-chan struct{}, gone bool) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	for _, e := range r.history {
		if e.rv > rv {
			events = append(events, e)
		}
	}
	return events, r.server.news, rv < r.compacted
}

func (e event) frame() string { return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", e.kind, e.text) }

// errorEvent is an ERROR event with a Status.
func errorEvent(status string) string { return `{"type":"ERROR","object":` + status + "}\n" }

var expired = errorEvent(status(http.StatusGone, "Expired", "too old resource version", 0))

func send(w http.ResponseWriter, text string) {
	_, _ = w.Write([]byte(text)) // the client may be gone
	_ = http.NewResponseController(w).Flush()
}

// cut ends all connections, so that each stream opens a new watch.
func (s *server) cut() { s.CloseClientConnections() }

// head is the newest resource version.
func (s *server) head() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rv
}

var deltaTypes = map[string]string{"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}

// listed is what a list at a resource version puts on record where nothing was.
func (r *resource) listed(t *testing.T, rv int) []version {
	t.Helper()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return versions(t, r.living(rv), func(event) string { return "Sync" })
}

// watched is what a watch from a resource version puts on record.
func (r *resource) watched(t *testing.T, rv int) []version {
	t.Helper()
	events, _, _ := r.after(rv)
	return versions(t, events, func(e event) string { return deltaTypes[e.kind] })
}

func versions(t *testing.T, events []event, typeOf func(event) string) []version {
	t.Helper()
	var all []version
	for _, e := range events {
		all = append(all, parse(t, typeOf(e), e.text))
	}
	return all
}

func parse(t *testing.T, deltaType, text string) version {
	t.Helper()
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	var object struct {
		Metadata struct{ Namespace, Name, UID, ResourceVersion string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &object))
	m := object.Metadata
	return version{Type: deltaType, Namespace: m.Namespace, Name: m.Name, UID: m.UID, RV: m.ResourceVersion, Doc: string(doc)}
}
