package past

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/page"
	"github.com/kuberewind/kuberewind/timeline"
	"github.com/kuberewind/kuberewind/web"
)

const (
	// AnyPort is the default address of the API: any free port of loopback. With a fixed port, a second database could not
	// be served.
	AnyPort = "127.0.0.1:0"
	// PagePort is the default address of the page. A browser stores the data of a page by its port.
	PagePort = "127.0.0.1:9465"
)

// Options are the settings for serving records.
type Options struct {
	API   apiserver.Options // Listen adds the records.
	Front serve.Options     // Listen adds the handler.
	Page  *Page             // nil for none
}

// A Page holds the settings of the page. It shares the others with the API.
type Page struct {
	Address string
	// OrAny selects any free port if the port of Address is taken.
	OrAny bool
	// Live decides who may read, if the server is shared.
	Live page.Live
}

// A Server serves records with an API and a page.
type Server struct {
	api     *serve.Server
	page    *serve.Server // nil for none
	codes   *page.Codes   // nil without links: if there is no page, or the page is shared
	closing []func()
}

// Listen returns a server of records. Libraries log odd requests to the server's log.
func Listen(records []*history.Record, o Options) (*Server, error) {
	klog.SetSlogLogger(o.Front.Log.With("from", "apimachinery"))
	o.API.Records, o.API.Log = records, o.Front.Log
	handler, err := apiserver.New(o.API)
	if err != nil {
		return nil, err
	}
	s := &Server{closing: []func(){handler.Close}}
	o.Front.Handler = handler
	if o.Page != nil {
		err = s.listenForPage(records, handler, &o)
	}
	if err == nil {
		o.Front.Proxied = true // Headlamp has its own page, and forwards requests
		s.api, err = serve.Listen(o.Front)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// listenForPage starts the page. If the server is not shared, the API gives codes for the page. If it is shared, users have
// their own tokens.
func (s *Server) listenForPage(records []*history.Record, sessions http.Handler, o *Options) (err error) {
	options := page.Options{
		Address: o.Page.Address, AllowedHosts: o.Front.AllowedHosts, Web: web.Handler(), Timelines: s.timelines(records, o),
		Sessions: sessions, Audit: o.Front.Audit, Log: o.Front.Log,
	}
	if o.Front.Shared != nil {
		options.Shared = &page.Shared{Certificate: o.Front.Shared.Certificate, Live: o.Page.Live}
	} else {
		s.codes = page.NewCodes()
		options.Codes = s.codes
	}
	s.page, err = page.Listen(options)
	if o.Page.OrAny && errors.Is(err, syscall.EADDRINUSE) {
		options.Address = anyPortOf(options.Address)
		s.page, err = page.Listen(options)
	}
	if err == nil && s.codes != nil {
		o.Front.Handler = s.codes.ForLinks(s.Page(), o.Front.Handler)
	}
	return err
}

func anyPortOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // the address was valid for Listen
	return net.JoinHostPort(host, "0")
}

// timelines returns the handlers that answer the page. If live clusters decide who may read, each cluster has its own
// handler, which knows no other cluster.
func (s *Server) timelines(records []*history.Record, o *Options) map[string]http.Handler {
	var all []timeline.Cluster
	timelines := map[string]http.Handler{}
	add := func(key string, clusters []timeline.Cluster) {
		handler := timeline.New(timeline.Options{Clusters: clusters, Log: o.Front.Log})
		s.closing = append(s.closing, handler.Close)
		timelines[key] = handler
	}
	for _, record := range records {
		c := timeline.Cluster{UID: record.Cluster().UID, Name: record.Cluster().Name, Record: record}
		all = append(all, c)
		if o.Front.Shared != nil {
			add(c.UID, []timeline.Cluster{c})
		}
	}
	if o.Front.Shared == nil {
		add("", all)
	}
	return timelines
}

// Access returns the data that clients of the API need.
func (s *Server) Access() serve.Access { return s.api.Access() }

// Page returns the URL of the page, "" without a page.
func (s *Server) Page() string {
	if s.page == nil {
		return ""
	}
	return s.page.Access().URL + "/"
}

// Link returns a new link to the page. There is none without a page, or if the page is shared.
func (s *Server) Link() (l Link, ok bool) {
	if s.codes == nil {
		return l, false
	}
	return Link{Page: s.Page(), Code: s.codes.New()}, true
}

// Serve serves until ctx ends. Call it once.
func (s *Server) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.api.Serve(ctx) })
	if s.page != nil {
		group.Go(func() error { return s.page.Serve(ctx) })
	}
	return group.Wait()
}

// Close stops the server and its handlers.
func (s *Server) Close() {
	for _, listener := range []*serve.Server{s.api, s.page} {
		if listener != nil {
			listener.Close()
		}
	}
	for _, end := range s.closing {
		end()
	}
}
