package kube

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// slack bounds the bytes that a server has sent and no client has read: buffers of sockets and connections.
const slack = 16 << 20

// unending is a server whose answers have no end. It counts the bytes that it could write.
type unending struct {
	*httptest.Server
	sent atomic.Int64
}

// newUnending answers requests for the paths with head, and then repeats part without end.
func newUnending(t *testing.T, head, part string, packed bool, other http.HandlerFunc, paths ...string) *unending {
	t.Helper()
	e := &unending{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range paths {
			if r.URL.Path == path {
				e.answer(w, head, part, packed)
				return
			}
		}
		other(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// answer writes until the client closes the connection.
func (e *unending) answer(w http.ResponseWriter, head, part string, packed bool) {
	w.Header().Set("Content-Type", "application/json")
	out := io.Writer(w)
	if packed {
		w.Header().Set("Content-Encoding", "gzip")
		out, _ = gzip.NewWriterLevel(w, gzip.BestSpeed)
	}
	_, err := io.WriteString(out, head)
	chunk := strings.Repeat(part, 1+(64<<10)/len(part))
	for err == nil {
		var n int
		n, err = io.WriteString(out, chunk)
		e.sent.Add(int64(n))
	}
}

var nowhere = answer(404, "text/plain", "404 page not found")

func TestAnAnswerWithoutEndIsReadUpToItsBound(t *testing.T) {
	digits := []string{`{"gitVersion":"`, "9"}
	for name, ask := range map[string]struct {
		path string
		do   func(context.Context, *Client) error
	}{
		"/version": {"/version", func(ctx context.Context, c *Client) error {
			_, err := c.ServerVersion(ctx)
			return err
		}},
		"OpenAPI": {"/openapi/v3", func(ctx context.Context, c *Client) error {
			_, err := c.Documents(ctx, nil)
			return err
		}},
		"discovery": {"/api", func(ctx context.Context, c *Client) error {
			_, err := c.Discover(ctx, nil)
			return err
		}},
	} {
		for kind, packed := range map[string]bool{"plain": false, "gzip": true} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				e := newUnending(t, digits[0], digits[1], packed, nowhere, ask.path)
				err := ask.do(t.Context(), connect(t, &rest.Config{Host: e.URL}, Options{}))
				var large *AnswerTooLargeError
				require.ErrorAs(t, err, &large)
				require.Equal(t, ask.path, large.Path)
				require.ErrorContains(t, err, "is larger than 67108864 bytes")
				e.CloseClientConnections()
				if !packed { // Discovery makes two kinds of requests.
					require.Less(t, e.sent.Load(), int64(2*(maxAnswer+slack)))
				}
			})
		}
	}
}

func TestAnErrorWithoutEndIsReadUpToItsBound(t *testing.T) {
	var sent atomic.Int64
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusInternalServerError)
		for part := strings.Repeat("no ", 20_000); ; {
			n, err := io.WriteString(w, part)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	_, err := client.ListWatch(pods, "").Page(t.Context(), metav1.ListOptions{})
	require.ErrorAs(t, err, new(*AnswerTooLargeError))
	require.Less(t, sent.Load(), int64(maxAnswer+slack))
}

func TestAPageWithoutEndIsReadUpToItsBoundAndNamesTheResource(t *testing.T) {
	const most = 4 << 20
	for name, test := range map[string]struct {
		item string
		rest bool // true if the objects' memory besides their text reaches the bound
	}{
		"large objects":              {`{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", 100<<10) + `"},`, false},
		"the shortest objects":       {`{},`, true},
		"what is no object":          {`1,`, true},
		"objects in several sockets": {`{"metadata":{"name":"a"}},`, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newUnending(t, `{"metadata":{"resourceVersion":"5"},"items":[`, test.item, false, nowhere, "/api/v1/pods")
			client := connect(t, &rest.Config{Host: e.URL}, Options{MaxPageBytes: most, MaxFrameBytes: 1 << 20})
			_, err := client.ListWatch(pods, "").Page(t.Context(), metav1.ListOptions{Limit: 2})
			var large *PageTooLargeError
			require.ErrorAs(t, err, &large)
			require.ErrorContains(t, err, "list of v1 pods: the server ignores the requested limit of 2 objects, and its page takes more than 4194304 bytes")
			require.ErrorContains(t, err, "raise --queue-size to allow larger pages, or exclude the resource with --exclude pods")
			require.Less(t, e.sent.Load(), int64(most+slack))
			require.LessOrEqual(t, large.Items, int64(most/itemRoom+1))
		})
	}
}

// newLarge is a server of pods a, b, c and so on, one for each size. Each pod has that many KiB. newLarge records the
// requested limits.
func newLarge(t *testing.T, sizes ...int) (client *Client, limits *[]string) {
	limits = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		*limits = append(*limits, q.Get("limit"))
		from, _ := strconv.Atoi(q.Get("continue"))
		to, next := len(sizes), ""
		if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && from+limit < to {
			to = from + limit
			next = strconv.Itoa(to)
		}
		var items []string
		for i := from; i < to; i++ {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"%c"},"data":"%s"}`, 'a'+i, strings.Repeat("x", sizes[i]<<10)))
		}
		answer(200, "application/json", `{"metadata":{"resourceVersion":"5","continue":"`+next+`"},"items":[`+strings.Join(items, ",")+`]}`)(w, r)
	}))
	t.Cleanup(server.Close)
	return connect(t, &rest.Config{Host: server.URL}, Options{MaxFrameBytes: 1 << 20, MaxPageBytes: 1 << 20}), limits
}

func TestAPageOfLargeObjectsIsRequestedAgainWithFewerObjects(t *testing.T) {
	client, limits := newLarge(t, 300, 300, 300, 600, 600, 1, 1)
	var pages [][]string
	for options := (metav1.ListOptions{Limit: 500}); ; {
		list, err := client.ListWatch(pods, "").ListWithContext(t.Context(), options)
		require.NoError(t, err)
		page := list.(*List)
		var objects []string
		for _, o := range page.Items {
			objects = append(objects, o.Name)
		}
		pages = append(pages, objects)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	require.Equal(t, [][]string{{"a", "b", "c"}, {"d"}, {"e", "f", "g"}}, pages)
	require.Equal(t, []string{"500", "3", "500", "1", "500"}, *limits)
}

func TestAListWithoutALimitIsNotReplacedByAPart(t *testing.T) {
	client, limits := newLarge(t, 600, 600)
	_, err := client.ListWatch(pods, "").Page(t.Context(), metav1.ListOptions{})
	require.ErrorAs(t, err, new(*PageTooLargeError))
	require.ErrorContains(t, err, "list of v1 pods: all of it in one page takes more than 1048576 bytes, after 2 objects")
	require.Equal(t, []string{""}, *limits)
}

func TestAGroupWithATooLargeDiscoveryAnswerFailsAlone(t *testing.T) {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	documents := map[string]string{
		"/api":            `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":           `{"kind":"APIGroupList","groups":[{"name":"bad","versions":[{"groupVersion":"bad/v1","version":"v1"}],"preferredVersion":{"groupVersion":"bad/v1","version":"v1"}}]}`,
		"/api/v1":         `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]}]}`,
		"aggregated core": offer{"v1": {"pods"}}.document(true),
	}
	var e *unending
	e = newUnending(t, `{"resources":[`, `{"name":"x"},`, false, func(w http.ResponseWriter, r *http.Request) {
		wantsAll := strings.Contains(r.Header.Get("Accept"), "apidiscovery")
		switch {
		case wantsAll && r.URL.Path == "/api":
			answer(200, aggregated, documents["aggregated core"])(w, r)
		case wantsAll && r.URL.Path == "/apis":
			w.Header().Set("Content-Type", aggregated)
			e.answer(w, `{"kind":"APIGroupDiscoveryList","items":[`, `{},`, false)
		default:
			answer(200, "application/json", documents[r.URL.Path])(w, r)
		}
	}, "/apis/bad/v1")
	d, err := connect(t, &rest.Config{Host: e.URL}, Options{}).Discover(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"v1 pods"}, names(d.Resources))
	require.ErrorAs(t, d.Failed[schema.GroupVersion{Group: "bad", Version: "v1"}], new(*AnswerTooLargeError))
}

func TestResourcesWithInvalidNamesAreOmittedAndAllOthersAreFound(t *testing.T) {
	resource := func(name, kind string) string {
		return fmt.Sprintf(`{"resource":%s,"responseKind":{"group":"g","version":"v1","kind":%s},"scope":"Namespaced","verbs":["list","watch"]}`, name, kind)
	}
	group := func(name, version string, resources ...string) string {
		return fmt.Sprintf(`{"metadata":{"name":%s},"versions":[{"version":%s,"freshness":"Current","resources":[%s]}]}`, name, version, strings.Join(resources, ","))
	}
	thing := resource(`"things"`, `"Thing"`)
	all := []string{
		group(`"good.example"`, `"v1"`, thing, resource(`"http_requests:rate5m"`, `"Metric"`), resource(`"n\u0000l"`, `"Thing"`),
			resource(`".."`, `"Thing"`), resource(`""`, `"Thing"`), resource(`"'; drop table deltas; --"`, `"Thing"`),
			resource(`"a%2fb"`, `"Thing"`), resource(`"\u001b[31m"`, `"Thing"`), resource(`"\u202e"`, `"Thing"`),
			resource(`"`+strings.Repeat("x", 254)+`"`, `"Thing"`), resource(`"kinds"`, `"K\u0000nd"`)),
		group(`"Bad_Group"`, `"v1"`, thing), group(`"bad\u0000"`, `"v1"`, thing), group(`"version.example"`, `"v\n1"`, thing),
	}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		items := ""
		if r.URL.Path == "/apis" {
			items = strings.Join(all, ",")
		}
		answer(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`+items+`]}`)(w, r)
	})
	d, err := client.Discover(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"good.example/v1 '; drop table deltas; --", "good.example/v1 http_requests:rate5m", "good.example/v1 things"}, names(d.Resources), "any printable name is valid")
	require.Len(t, d.Misnamed, 11)
	for _, name := range d.Misnamed {
		require.True(t, printable(name) || len(name) > maxName, "%q", name)
	}
	require.Contains(t, d.Misnamed, `"good.example/v1 n\x00l": its name cannot be part of a path`)
	require.Contains(t, d.Misnamed, `"good.example/v1 kinds": its kind cannot be printed`)
	require.Contains(t, d.Misnamed, `"version.example/v\n1 things": its version is no DNS-1123 label`)
	require.Contains(t, d.Misnamed, `"Bad_Group/v1 things": its group is no DNS-1123 subdomain`)
}

func TestADefinitionWithInvalidNamesIsAnError(t *testing.T) {
	_, err := parseDefinition(&Object{ObjectMeta: metav1.ObjectMeta{Name: "a\x1b"},
		JSON: []byte(`{"spec":{"group":"g","scope":"Cluster","names":{"plural":"a\u0000","kind":"A"},"versions":[{"name":"v1","served":true}]}}`)})
	require.EqualError(t, err, `CustomResourceDefinition "a\x1b": its name cannot be part of a path`)
}

func TestAListOfDefinitionsThatNeverEndsIsAborted(t *testing.T) {
	var asked atomic.Int64
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(200, "application/json", `{"metadata":{"resourceVersion":"10","continue":"again"},"items":[]}`)(w, r)
	})
	a := newExtractCache[definition](client.ListWatch(definitionResource, ""), FollowerOptions{}.withDefaults().Log)
	a.parse = parseDefinition
	a.follow(t.Context())
	require.Equal(t, int64(2), asked.Load())
	require.ErrorContains(t, (&recall[definition]{cache: a}).dropBegunAt(t.Context(), "10"), "the list would never end")
	require.Equal(t, int64(4), asked.Load())
}
