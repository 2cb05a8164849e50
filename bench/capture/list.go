package capture

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
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
)

func (c *Capture) path(r data.Resource) string {
	if r.Group == "" {
		return "/api/" + r.APIVersion() + "/" + r.Resource
	}
	return "/apis/" + r.APIVersion() + "/" + r.Resource
}

// Refusals that are not the end.
var (
	errExpired  = errors.New("too old a resource version")
	errNotFound = errors.New("not served")
)

// refused says what a status is.
func refused(status int) error {
	switch status {
	case http.StatusGone:
		return errExpired
	case http.StatusNotFound:
		return errNotFound
	default:
		return nil
	}
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
		// An API server that restarts the storage of a resource says so.
		if err := errors.Join(resp.Body.Close(), pause(ctx, resp.Header.Get("Retry-After"))); err != nil {
			return nil, err
		}
		if resp, err = c.client.Do(req); err != nil {
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, errors.Join(fmt.Errorf("%s: %s", resp.Status, text), refused(resp.StatusCode), err, resp.Body.Close())
	}
	return resp.Body, nil
}

// pause waits for as many seconds as a server has asked for, one if it has not said.
func pause(ctx context.Context, seconds string) error {
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

// list gives the objects of a resource at a revision, or at the present one if none is named.
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
