package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/paging"
	"github.com/kuberewind/kuberewind/kube"
)

// An API server can show a stored object in another form, though the object and its resource version do not change. A default
// in its definition, a conversion, another served version or another release of the server may do so. No watch tells that. So,
// when something that decides the form has changed, the recorder lists the objects and compares them with what is known. The
// list is no relist: the watch goes on, and no position moves.

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

// schemas knows what decides the content of objects at a resource version.
type schemas struct {
	server string // release; protected by mu once the streams run

	mu      sync.Mutex // protects digests
	digests map[schema.GroupResource]string
}

func newSchemas() *schemas { return &schemas{digests: map[schema.GroupResource]string{}} }

// defined notes the definition of a resource.
func (s *schemas) defined(resource kube.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digests[resource.GroupResource()] = resource.Schema
}

// release notes what the server says of itself at /version.
func (s *schemas) release(document []byte) {
	release, err := kube.ParseVersion(document)
	if err != nil {
		return // It is on record as it is.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = release
}

// of names the present schema of a resource, as it is served.
func (s *schemas) of(resource kube.Resource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(strings.Fields(resource.Version+" "+s.digests[resource.GroupResource()]+" "+s.server), " ")
}

// comparer compares the streams whose schema is not the one under which they were compared last. What that was is on record, so it does not matter
// whether the recorder ran when it changed.
type comparer struct {
	streams func() []*stream
	schemas *schemas
	// compare lists and compares one stream, and says with Compared that it was done under a schema, if that is not empty.
	compare func(ctx context.Context, s *stream, run *streamRun, schema string) (different int, err error)
	now     func() time.Time
	log     *slog.Logger

	pending map[*stream]*comparison
}

// A comparison is what is to be done about one stream.
type comparison struct {
	schema string
	next   time.Time
	once   bool // it was done for the first time
	done   bool // and for the last: what says so is on its way to the record
}

// compareContents runs the comparer until ctx ends.
func (r *Recorder) compareContents(ctx context.Context) error {
	c := &comparer{streams: r.snapshot, schemas: r.schemas, compare: r.compareStream, now: time.Now, log: r.log, pending: map[*stream]*comparison{}}
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// Before that, the definitions are not all known.
		if r.synced.Load() {
			c.round(ctx)
		}
	}
}

func (c *comparer) round(ctx context.Context) {
	for _, s := range c.streams() {
		run := s.current()
		if run == nil || run.listing.Load() {
			continue
		}
		want := c.schemas.of(run.served)
		if s.record.Schema() == want {
			delete(c.pending, s)
			continue
		}
		p := c.pending[s]
		if p == nil || p.schema != want {
			p = &comparison{schema: want, next: c.now()}
			c.pending[s] = p
		}
		if p.done || c.now().Before(p.next) {
			continue
		}
		c.step(ctx, s, run, p)
	}
}

// step compares one stream.
func (c *comparer) step(ctx context.Context, s *stream, run *streamRun, p *comparison) {
	say := ""
	if p.once {
		say = p.schema
	}
	different, err := c.compare(ctx, s, run, say)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		p.next = c.now().Add(compareRetry)
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // which the stream says itself
			c.log.Warn("objects were not compared with what the server serves under another schema; trying again", "stream", s.name, "schema", p.schema, "error", err)
		}
		return
	case different > 0:
		c.log.Info("objects have another content at the same resource version", "stream", s.name, "schema", p.schema, "objects", different)
	}
	p.done = p.once
	p.once, p.next = true, c.now().Add(compareAgainAfter)
}

// compareStream has a FIFO of its own, as the sweep has: that of the run may be closed meanwhile.
func (r *Recorder) compareStream(ctx context.Context, s *stream, run *streamRun, schema string) (different int, err error) {
	release, err := r.gate.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{
		Stream: s, Name: s.name, KnownObjects: s.record.Known(), Transformer: transformer(s.redaction),
	})
	defer fifo.Close()
	stop := context.AfterFunc(ctx, fifo.Close)
	defer stop()
	different, err = comparePages(ctx, r.client.ListWatch(run.served, ""), fifo)
	if err != nil || schema == "" {
		return different, err
	}
	return different, fifo.Compared(schema)
}

// comparePages goes through a list. A part of it that has expired is had at a later resource version: each object is compared by itself.
func comparePages(ctx context.Context, lw *kube.ListWatch, fifo *deltafifo.FIFO) (different int, err error) {
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
		n, err := fifo.Compare(objects)
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
