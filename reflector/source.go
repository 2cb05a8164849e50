package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// watchGrace is how much longer than requested a watch may last before the reflector closes it: the server, or the
	// network, has forgotten it.
	watchGrace = 30 * time.Second
	// freshTries is how many new connections the reflector tries after a 410.
	freshTries = 2
	// pageTimeout is how long one page may take. Servers give up after one minute.
	pageTimeout = 5 * time.Minute
)

// source sends the requests for one resource to the API server: pages of lists, and watches. Another goroutine may open
// and close its watches while it lists.
type source struct {
	lw       cache.ListerWatcherWithContext
	fresh    func() cache.ListerWatcher // Options.Fresh
	useFresh bool                       // the next watch uses fresh
	tried    int                        // new connections tried after a 410, since a watch has worked or a list was completed

	what     string        // Options.TypeDescription
	shortest time.Duration // Options.MinWatchTimeout
	pages    pageSize
	clock    clock.Clock
	log      *slog.Logger
	hooks    Hooks
}

func newSource(lw cache.ListerWatcher, options *Options, log *slog.Logger) *source {
	return &source{
		lw:       cache.ToListerWatcherWithContext(lw),
		fresh:    options.Fresh,
		what:     options.TypeDescription,
		shortest: options.MinWatchTimeout,
		pages:    pageSize{most: options.PageSize, bytes: options.PageBytes},
		clock:    options.Clock,
		log:      log,
		hooks:    options.Hooks,
	}
}

// works notes that a watch works or a list was completed.
func (s *source) works() { s.tried = 0 }

// tryFresh makes the next watch use a new connection. It returns false if enough were tried.
func (s *source) tryFresh() bool {
	if s.fresh == nil || s.tried >= freshTries {
		return false
	}
	s.tried++
	s.useFresh = true
	return true
}

// openNext opens the next watch of the stream.
func (s *source) openNext(ctx context.Context, from string) (*openWatch, error) {
	if s.useFresh && s.fresh != nil {
		s.useFresh = false
		return s.openAt(ctx, cache.ToListerWatcherWithContext(s.fresh()), from)
	}
	return s.open(ctx, from)
}

// open starts a watch. It does not change the source.
func (s *source) open(ctx context.Context, from string) (*openWatch, error) {
	return s.openAt(ctx, s.lw, from)
}

func (s *source) openAt(ctx context.Context, lw cache.ListerWatcherWithContext, from string) (*openWatch, error) {
	seconds := int64(s.shortest.Seconds() * (1 + rand.Float64()))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchGrace)
	opened := &openWatch{ctx: ctx, cancel: cancel, asked: s.clock.Now()}
	var err error
	opened.watch, err = lw.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion:     from,
		TimeoutSeconds:      &seconds,
		AllowWatchBookmarks: true,
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch %s from resource version %s: %w", s.what, from, err)
	}
	s.hooks.WatchOpened(from)
	opened.heard = s.clock.Now()
	return opened, nil
}

// close stops a watch and calls the hook.
func (s *source) close(opened *openWatch, err error) {
	if opened.watch == nil {
		return
	}
	opened.stop()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	s.hooks.WatchClosed(err)
}

// fetch requests a page of a list to record.
func (s *source) fetch(ctx context.Context, options metav1.ListOptions) (page, error) {
	p, err := s.list(ctx, options)
	if err != nil {
		return page{}, err
	}
	s.pages.adapt(p)
	s.hooks.ListPage(len(p.items), p.bytes)
	if len(p.undecodable) > 0 {
		s.hooks.Undecodable(len(p.undecodable))
		s.log.ErrorContext(ctx, "items of a list could not be decoded", "items", undecodableItems(p.undecodable))
	}
	return p, nil
}

// list requests any page. An answer that is not a page is an unusableFailure.
func (s *source) list(ctx context.Context, options metav1.ListOptions) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	list, err := s.lw.ListWithContext(ctx, options)
	if err != nil {
		return page{}, err
	}
	p, err := pageOf(list)
	if err != nil {
		return page{}, &failure{kind: unusableFailure, err: err}
	}
	return p, nil
}
