package apiserver

import (
	"context"
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
)

// A listing selects the objects of a list: a resource at a version, from a key on.
type listing struct {
	state *state.State
	rv    string
	from  string
	exact bool // rv is older than the instant
}

func (c *call) list(w http.ResponseWriter, r *http.Request) error {
	l, err := c.listing(r.Context())
	if err != nil {
		return err
	}
	for i, text := range l.state.Damaged {
		if i < mostWarnings {
			wire.Warn(w, "omitted: "+text)
		}
	}
	meta, entries, err := c.page(l)
	if err != nil {
		return err
	}
	answer := wire.NewAnswer(w)
	if err := c.form.list(r.Context(), answer, meta, entries); err != nil {
		if answer.Begun() {
			panic(http.ErrAbortHandler) // a truncated list must not look complete
		}
		return err
	}
	_ = answer.Close() // The client may be gone.
	return nil
}

// listing selects the objects by the resource version, its match and the continue token.
func (c *call) listing(ctx context.Context) (*listing, error) {
	position, err := c.at.position(ctx, c.resource)
	if err != nil {
		return nil, err
	}
	l := &listing{rv: position}
	rv := c.options.ResourceVersion
	switch {
	case c.options.Continue != "":
		t, err := c.tokens().read(&c.options)
		if err != nil {
			return nil, err
		}
		l.rv, l.from, l.exact = t.RV, t.Start, t.Exact
	case rv == "" || rv == "0":
	default:
		if err := c.reached(rv, position); err != nil {
			return nil, err
		}
		if rv != position && (c.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact || c.options.ResourceVersionMatch == "" && c.options.Limit > 0) {
			l.rv, l.exact = rv, true
		}
	}
	if l.exact {
		l.state, err = c.exactly(ctx, l.rv)
	} else {
		l.state, err = c.at.state(ctx, c.resource, c.namespace)
	}
	return l, err
}

// exactly returns the resource at an older version.
func (c *call) exactly(ctx context.Context, rv string) (*state.State, error) {
	p, err := c.at.cluster.record.Resolve(ctx, history.AtRV(rv), history.Scope{Streams: c.resource.scope.Streams})
	if err != nil {
		return nil, unresolved(err)
	}
	if err := c.permit.allowVersion(ctx, p, c.at.point.Seq); err != nil {
		return nil, err
	}
	return c.at.stateAt(ctx, c.resource, c.namespace, rv, p)
}

// page returns the objects of one answer, and its metadata.
func (c *call) page(l *listing) (metav1.ListMeta, iter.Seq[*state.Entry], error) {
	meta := metav1.ListMeta{ResourceVersion: l.rv}
	entries := l.state.Range(c.namespace, l.from)
	if c.options.Limit <= 0 || c.options.ResourceVersion == "0" { // the API server does not page answers from its cache
		return meta, c.selected(entries), nil
	}
	var page []*state.Entry
	for i := range entries {
		if !c.all && !c.matches(&entries[i]) {
			continue
		}
		if int64(len(page)) == c.options.Limit {
			token, err := c.tokens().write(l, entries[i].Key())
			if err != nil {
				return meta, nil, err
			}
			meta.Continue = token
			if left := int64(len(entries) - i); c.all {
				meta.RemainingItemCount = &left
			}
			break
		}
		page = append(page, &entries[i])
	}
	return meta, func(yield func(*state.Entry) bool) {
		for _, e := range page {
			if !yield(e) {
				return
			}
		}
	}, nil
}

func (c *call) selected(entries []state.Entry) iter.Seq[*state.Entry] {
	return func(yield func(*state.Entry) bool) {
		for i := range entries {
			if (c.all || c.matches(&entries[i])) && !yield(&entries[i]) {
				return
			}
		}
	}
}

func (c *call) matches(e *state.Entry) bool { return c.selects.Matches(e.Body) }
