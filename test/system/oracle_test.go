package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/patch"
)

// The oracle knows the record of a recorder that misses nothing, in two ways that share no code with the recorder. One is
// etcd's own history. The other is the answer of an API server without a watch cache that is asked for all of that history.
type oracle struct {
	plane  *controlplane.ControlPlane
	client *http.Client
	host   string
	// from is the revision after which everything is expected, to the last one.
	from, to int64
}

// version is one version of an object as it was served.
type version struct {
	Type string // Added, Updated, Deleted
	Doc  patch.Doc
	meta
}

type meta struct {
	Namespace, Name, UID, ResourceVersion string
}

type streamName struct{ group, version, resource string }

func (s streamName) path() string {
	if s.group == "" {
		return "/api/" + s.version + "/" + s.resource
	}
	return "/apis/" + s.group + "/" + s.version + "/" + s.resource
}

func newOracle(t *testing.T, plane *controlplane.ControlPlane) *oracle {
	t.Helper()
	server, err := plane.StartAPIServer(t.Context(), controlplane.APIServerOptions{Args: []string{"--watch-cache=false"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Kill()) }) // the control plane may go on without it
	config, err := server.Config(controlplane.AdminName)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return &oracle{plane: plane, client: client, host: config.Host}
}

// notObjects are internal keys of the API server. It serves them to no client.
var notObjects = []string{"/registry/ranges/", "/registry/masterleases/", "/registry/peerserverleases/"}

// write is one write of etcd: which revision, and what kind.
type write struct {
	rev  int64
	kind string
}

var deltaTypes = map[controlplane.RevisionKind]string{
	controlplane.Create: "Added", controlplane.Update: "Updated", controlplane.Delete: "Deleted",
}

// writes counts etcd's writes of objects by revision and kind: several only where a lease expired.
func (o *oracle) writes(ctx context.Context) (map[write]int, error) {
	writes := map[write]int{}
	err := o.plane.Etcd.EachRevision(ctx, o.from+1, o.to, func(r controlplane.Revision) error {
		for _, prefix := range notObjects {
			if strings.HasPrefix(r.Key, prefix) {
				return nil
			}
		}
		writes[write{r.Rev, deltaTypes[r.Kind]}]++
		return nil
	})
	return writes, err
}

// served asks for the history of all streams, until it has as many versions as were written.
func (o *oracle) served(ctx context.Context, streams []streamName, written int) (map[streamName][]version, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var n atomic.Int64
	count := func() {
		if n.Add(1) >= int64(written) {
			enough()
		}
	}
	found := make([][]version, len(streams))
	g, ctx := errgroup.WithContext(ctx)
	for i, s := range streams {
		g.Go(func() error {
			var err error
			found[i], err = o.watch(ctx, s, count)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := map[streamName][]version{}
	for i, s := range streams {
		all[s] = found[i]
	}
	return all, nil
}

var eventTypes = map[string]string{"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}

// watch reads the history of one stream, and counts each version. It ends when ctx does, or, should versions be missing, with the time
// that the server gives it.
func (o *oracle) watch(ctx context.Context, s streamName, count func()) ([]version, error) {
	query := url.Values{"watch": {"1"}, "resourceVersion": {strconv.FormatInt(o.from, 10)}, "timeoutSeconds": {"120"}}
	body, err := o.get(ctx, s.path(), query)
	if err != nil {
		return nil, unlessEnded(ctx, err)
	}
	defer body.Close()
	var versions []version
	decoder := json.NewDecoder(body)
	for {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) {
			return versions, nil
		}
		if err != nil {
			return versions, unlessEnded(ctx, fmt.Errorf("%s: %w", s.path(), err))
		}
		v, err := parseVersion(event.Object)
		if err != nil || eventTypes[event.Type] == "" {
			return nil, fmt.Errorf("%s: event %s: %s (%w)", s.path(), event.Type, event.Object, err)
		}
		v.Type = eventTypes[event.Type]
		if rev, err := strconv.ParseInt(v.ResourceVersion, 10, 64); err != nil || rev > o.to {
			return versions, err
		}
		versions = append(versions, v)
		count()
	}
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // enough was read
	}
	return err
}

// list reads what a stream was at a revision.
func (o *oracle) list(ctx context.Context, s streamName, rv string) ([]version, error) {
	body, err := o.get(ctx, s.path(), url.Values{"resourceVersion": {rv}, "resourceVersionMatch": {"Exact"}})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var list struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(), err)
	}
	versions := make([]version, 0, len(list.Items))
	for _, item := range list.Items {
		// Items of typed lists come without what an object of a watch begins with.
		identity := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, list.APIVersion, strings.TrimSuffix(list.Kind, "List"))
		v, err := parseVersion(append([]byte(identity), bytes.TrimSpace(item)[1:]...))
		if err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	return versions, nil
}

func (o *oracle) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.host+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := o.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		return nil, fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return response.Body, nil
}

func parseVersion(text []byte) (version, error) {
	var object struct{ Metadata meta }
	if err := json.Unmarshal(text, &object); err != nil {
		return version{}, err
	}
	doc, err := patch.Canonical(text)
	return version{Doc: doc, meta: object.Metadata}, err
}
