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
	// AnyPort of loopback is where the API listens by default. With a fixed one, a second database could not be served.
	AnyPort = "127.0.0.1:0"
	// PagePort is where the page listens by default. A browser keeps what belongs to a page by its port.
	PagePort = "127.0.0.1:9465"
)

// Options say how records are served.
type Options struct {
	API   apiserver.Options // Listen adds the records.
	Front serve.Options     // Listen adds the handler.
	Page  *Page             // nil for none
}

// A Page says how the page is served. The rest is as in the options of the API.
type Page struct {
	Address string
	// OrAny takes any free port if that of Address is taken.
	OrAny bool
	// Live says who may read, if the server is shared.
	Live page.Live
}

// A Server serves records: as an API, and as a page.
type Server struct {
	api     *serve.Server
	page    *serve.Server // nil for none
	codes   *page.Codes   // nil if there are no links: without a page, and for a page that is shared
	closing []func()
}

// Listen makes a server of records. Library messages about odd requests go to the server's log.
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
		o.Front.PassedOn = true // Headlamp has a page of its own.
		s.api, err = serve.Listen(o.Front)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// listenForPage has the API give codes of the page, unless it is shared: then its users have tokens of their own.
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
	host, _, _ := net.SplitHostPort(address) // It is one that was listened on.
	return net.JoinHostPort(host, "0")
}

// timelines answer the page. If live clusters say who may read, each has one that knows no other cluster.
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

// Access is what clients of the API need.
func (s *Server) Access() serve.Access { return s.api.Access() }

// Page is the URL of the page, "" if there is none.
func (s *Server) Page() string {
	if s.page == nil {
		return ""
	}
	return s.page.Access().URL + "/"
}

// Link is a new link to the page. There is none without a page, and for a page that is shared.
func (s *Server) Link() (l Link, ok bool) {
	if s.codes == nil {
		return l, false
	}
	return Link{Page: s.Page(), Code: s.codes.New()}, true
}

// Serve blocks until ctx ends. It is to be called once.
func (s *Server) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.api.Serve(ctx) })
	if s.page != nil {
		group.Go(func() error { return s.page.Serve(ctx) })
	}
	return group.Wait()
}

// Close ends the server, and what its handlers started.
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
