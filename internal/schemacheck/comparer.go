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
	// compareEvery is how often the Comparer checks whether a comparison is due.
	compareEvery = time.Second
	// compareAgainAfter is the time between the first and the second comparison. Each API server applies a definition some time after it was
	// confirmed. A server that is asked too early still returns the old form.
	compareAgainAfter = 20 * time.Second
	// compareRetry is the time until a failed comparison is retried.
	compareRetry = time.Minute
	comparePage  = 500
)

// Stream is a stream that can be compared.
type Stream interface {
	Name() string
	// Serving returns the resource, in the version that the stream requests. ok is false if the stream is not followed, or a list runs.
	Serving() (resource kube.Resource, ok bool)
	Schema() string // the schema of the last comparison, from the record
}

// Comparer compares the streams whose schema has changed since their last comparison. The record holds the schema of the last comparison, so
// the Comparer also notices a change during which no recorder ran.
type Comparer struct {
	Streams func() []Stream
	Schemas *Schemas
	// Compare lists one stream and compares its objects. If schema is not empty, it also queues (Compared) that they were compared under it.
	Compare func(ctx context.Context, s Stream, resource kube.Resource, schema string) (different int, err error)
	Now     func() time.Time
	Log     *slog.Logger

	pending map[Stream]*comparison // the goroutine of Run owns it
}

// comparison is the state of the comparison of one stream.
type comparison struct {
	schema string
	next   time.Time
	once   bool // the first comparison was done
	done   bool // the second was done, too, and its schema is queued for the record
}

// Run compares until ctx ends. It compares nothing until ready reports that all definitions are known.
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

// Round compares the streams whose comparison is due.
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
	confirmed := "" // the first comparison confirms no schema
	if p.once {
		confirmed = p.schema
	}
	different, err := c.Compare(ctx, s, resource, confirmed)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		p.next = c.Now().Add(compareRetry)
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // the stream reports these itself
			c.Log.Warn("comparing recorded objects with the served ones after a change of schema failed; retrying", "stream", s.Name(), "schema", p.schema, "error", err)
		}
		return
	case different > 0:
		c.Log.Info("objects have different content at the same resource version", "stream", s.Name(), "schema", p.schema, "objects", different)
	}
	p.done = p.once
	p.once, p.next = true, c.Now().Add(compareAgainAfter)
}

// Pages lists a resource page by page and calls compare for each page. If the list expires, the rest comes from a later resource version. That
// is harmless, because each object is compared on its own.
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
