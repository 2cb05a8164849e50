package schemacheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/internal/paging"
	"github.com/kuberewind/kuberewind/kube"
)

const (
	// compareEvery is how often is looked whether a comparison is due.
	compareEvery = time.Second
	// compareAgainAfter is when the objects are compared for the second time. Each API server takes over a definition some
	// time after it was confirmed. A server that is asked too early still gives the old form.
	compareAgainAfter = 20 * time.Second
	// compareRetry is when a comparison that failed is tried again.
	compareRetry = time.Minute
	comparePage  = 500
)

// A Stream is followed, and may be compared.
type Stream interface {
	Name() string
	// Serving is the resource as it is asked for. It is not ok if nothing is followed, or a list is under way.
	Serving() (resource kube.Resource, ok bool)
	Schema() string // under which the objects on record were compared last
}

// Comparer compares the streams whose schema is not the one under which they were compared last. What that was is on record, so it does not matter
// whether the recorder ran when it changed.
type Comparer struct {
	Streams func() []Stream
	Schemas *Schemas
	// Compare lists and compares one stream, and says with Compared that it was done under a schema, if that is not empty.
	Compare func(ctx context.Context, s Stream, resource kube.Resource, schema string) (different int, err error)
	Now     func() time.Time
	Log     *slog.Logger

	pending map[Stream]*comparison // the goroutine of Run owns it
}

// A comparison is what is to be done about one stream.
type comparison struct {
	schema string
	next   time.Time
	once   bool // it was done for the first time
	done   bool // and for the last: what says so is on its way to the record
}

// Run compares until ctx ends, as long as ready says that all definitions are known.
func (c *Comparer) Run(ctx context.Context, ready func() bool) error {
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if ready() {
			c.Round(ctx)
		}
	}
}

// Round compares what is due.
func (c *Comparer) Round(ctx context.Context) {
	if c.pending == nil {
		c.pending = map[Stream]*comparison{}
	}
	for _, s := range c.Streams() {
		resource, ok := s.Serving()
		if !ok {
			continue
		}
		want := c.Schemas.Of(resource)
		if s.Schema() == want {
			delete(c.pending, s)
			continue
		}
		p := c.pending[s]
		if p == nil || p.schema != want {
			p = &comparison{schema: want, next: c.Now()}
			c.pending[s] = p
		}
		if p.done || c.Now().Before(p.next) {
			continue
		}
		c.step(ctx, s, resource, p)
	}
}

// step compares one stream.
func (c *Comparer) step(ctx context.Context, s Stream, resource kube.Resource, p *comparison) {
	say := ""
	if p.once {
		say = p.schema
	}
	different, err := c.Compare(ctx, s, resource, say)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		p.next = c.Now().Add(compareRetry)
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // which the stream says itself
			c.Log.Warn("objects were not compared with what the server serves under another schema; trying again", "stream", s.Name(), "schema", p.schema, "error", err)
		}
		return
	case different > 0:
		c.Log.Info("objects have another content at the same resource version", "stream", s.Name(), "schema", p.schema, "objects", different)
	}
	p.done = p.once
	p.once, p.next = true, c.Now().Add(compareAgainAfter)
}

// Pages goes through a list. A part of it that has expired is had at a later resource version: each object is compared by itself.
func Pages(ctx context.Context, lw *kube.ListWatch, compare func(objects []any) (different int, err error)) (different int, err error) {
	options := metav1.ListOptions{Limit: comparePage}
	var pages paging.Guard
	for {
		page, err := lw.Page(ctx, options)
		var status apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &status) && status.Status().Continue != "" && pages.Next(status.Status().Continue) == nil {
			options.Continue = status.Status().Continue
			continue
		}
		if err != nil {
			return different, err
		}
		objects := make([]any, len(page.Items))
		for i, object := range page.Items {
			objects[i] = object
		}
		n, err := compare(objects)
		different += n
		if err != nil {
			return different, err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return different, nil
		}
		if err := pages.Next(options.Continue); err != nil {
			return different, fmt.Errorf("list of %s: %w", lw.Resource(), err)
		}
	}
}
