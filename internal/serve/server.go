package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	// maxHeader is twice the longest selector that was seen in the wild.
	maxHeader = 128 << 10
	// maxBody is that of an API server.
	maxBody = 3 << 20
	// headerWithin bounds the TLS handshake as well.
	headerWithin = 10 * time.Second
	idleFor      = 2 * time.Minute
	// endWithin is the patience with requests that run when the server ends.
	endWithin = 5 * time.Second
	// tokenBytes are as many as nobody guesses.
	tokenBytes = 32
)

// HealthPath is answered by the server itself, to whoever has the token.
const HealthPath = "/healthz"

// ErrEnding is why a watch ends when the server does.
var ErrEnding = errors.New("the server ends")

// Options say how to serve what.
type Options struct {
	// Address is where to listen, HOST:PORT. The host is of loopback; port 0 is any free one.
	Address string
	// AllowedHosts are names by which clients may call the server, besides those of loopback.
	AllowedHosts []string
	// Handler answers requests that may pass.
	Handler http.Handler
	// Audit writes down every request, if it is not nil.
	Audit Audit
	Log   *slog.Logger
}

// An Audit makes a handler of one that is to be watched.
type Audit interface {
	Watch(next http.Handler) http.Handler
}

// Access is what a client needs.
type Access struct {
	URL   string `json:"url"`
	CA    []byte `json:"ca"` // PEM
	Token string `json:"token"`
}

// Server serves a handler over TLS on loopback, to clients that have its token.
type Server struct {
	access   Access
	guard    *guard
	handler  http.Handler
	audit    Audit
	listener net.Listener
	http     *http.Server

	ending     context.Context // of watches
	endWatches context.CancelCauseFunc
}

// Listen binds the address and makes certificate and token. Close or Serve lets go of it.
func Listen(o Options) (*Server, error) {
	hosts, err := allowed(o.AllowedHosts)
	if err != nil {
		return nil, err
	}
	listener, ip, err := listen(o.Address)
	if err != nil {
		return nil, err
	}
	hosts[ip.String()] = true
	ca, certificate, err := newCertificate(hosts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a certificate: %w", err), listener.Close())
	}
	access := Access{URL: "https://" + listener.Addr().String(), CA: ca, Token: newToken()}
	s := &Server{
		access: access, guard: &guard{hosts: hosts, token: access.Token}, handler: http.MaxBytesHandler(o.Handler, maxBody), audit: o.Audit, listener: listener,
	}
	s.ending, s.endWatches = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler: s, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// listen refuses what others than this machine could reach.
func listen(address string) (net.Listener, netip.Addr, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, netip.Addr{}, fmt.Errorf("listen on %q: write HOST:PORT, such as 127.0.0.1:6443; port 0 is any free one", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return nil, ip, fmt.Errorf("listen on %q: only 127.0.0.1, [::1] and localhost can be served: to serve others needs live authorization, "+
			"which this version does not have yet; from another machine, use ssh -L", address)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, ip, fmt.Errorf("%w; choose another address with --listen, or port 0 for any free one", err)
	}
	return listener, ip, nil
}

func newToken() string {
	token := make([]byte, tokenBytes)
	_, _ = rand.Read(token) // never fails
	return base64.RawURLEncoding.EncodeToString(token)
}

// Access is what clients need to reach the server.
func (s *Server) Access() Access { return s.access }

// ServeHTTP looks who asks, and passes on what may pass.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, refusal := s.guard.admit(r)
	next := s.handler
	switch {
	case refusal != nil:
		next = refusal
	case r.URL.Path == HealthPath:
		next = http.HandlerFunc(healthy)
	case r.URL.Query().Has("watch"):
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(s.ending, func() { cancel(ErrEnding) })()
		r = r.WithContext(ctx)
	}
	if s.audit != nil {
		next = s.audit.Watch(next)
	}
	next.ServeHTTP(w, r)
}

func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// Serve blocks until ctx ends. It is to be called once.
func (s *Server) Serve(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- s.shutdown(context.WithoutCancel(ctx)) })
	err := s.http.ServeTLS(s.listener, "", "")
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.access.URL, err)
	}
	return <-stopped
}

func (s *Server) shutdown(ctx context.Context) error {
	s.endWatches(ErrEnding)
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close() // A client that does not read its answer keeps nobody waiting.
	}
	return err
}

// Close stops listening, be it that Serve was called or not.
func (s *Server) Close() {
	s.endWatches(ErrEnding)
	_ = s.http.Close() // What is left are connections, whose clients see the end either way.
	_ = s.listener.Close()
}
