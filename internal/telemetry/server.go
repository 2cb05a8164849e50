package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check returns a word for a healthy state, or an error.
type Check func() (state string, err error)

// Server answers /metrics, /healthz and /readyz on one address.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen binds the address. Healthy checks whether the process should go on, ready whether it does its work.
func Listen(address string, metrics *Metrics, healthy, ready Check) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for /metrics and /healthz: %w; choose another address, or none, with --listen", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /healthz", probe(healthy))
	mux.Handle("GET /readyz", probe(ready))
	return newServer(listener, mux), nil
}

// newServer bounds the duration and the number of connections, because any Pod may open some.
func newServer(listener net.Listener, handler http.Handler) *Server {
	open := connections{}
	return &Server{listener: listener, http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10, ConnState: open.changed,
	}}
}

func probe(check Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		state, err := check()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, state)
	})
}

// Address returns the address on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops listening, whether Serve was called or not.
func (s *Server) Close() {
	_ = s.http.Close() // a client gets no answer now in any case
	_ = s.listener.Close()
}

// Serve serves until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		stopped <- s.http.Shutdown(shutdown)
	})
	err := s.http.Serve(s.listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
