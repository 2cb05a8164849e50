package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const (
	// maxHeader is twice the longest known selector of a real client.
	maxHeader = 128 << 10
	// maxBody is the limit of an API server.
	maxBody = 3 << 20
	// headerWithin also bounds the TLS handshake.
	headerWithin = 10 * time.Second
	idleFor      = 2 * time.Minute
	// endWithin is how long running requests may take when the server ends.
	endWithin = 5 * time.Second
	// tokenBytes is large enough that a token cannot be guessed.
	tokenBytes = 32
)

// HealthPath is a path that the server itself answers, for every client that the guard admits.
const HealthPath = "/healthz"

// ErrEnding is the cause of a watch's end when the server ends.
var ErrEnding = errors.New("the server is shutting down")

// Options of a Server.
type Options struct {
	// Address is HOST:PORT. Without Shared, the host must be loopback. Port 0 selects a free port.
	Address string
	// Flag is the flag that sets Address, for errors.
	Flag string
	// Shared serves other users than the holder of this server's token. On loopback it can be nil, or set for live
	// authorization.
	Shared *Shared
	// Plain serves HTTP without TLS on loopback, to clients that this Authenticator accepts. Browsers trust loopback, and
	// warn about every certificate made here. If Shared is set, Plain is ignored.
	Plain Authenticator
	// Proxied accepts requests that a server such as Headlamp's forwards for its own page. Such a request has a bearer
	// token, and the Origin of a page at an allowed host name, or file:// of a desktop application.
	Proxied bool
	// AllowedHosts are names of the server that clients may use, in addition to those of loopback.
	AllowedHosts []string
	// Handler answers accepted requests.
	Handler http.Handler
	// Header is in every answer, also to refused requests. The handler can replace its values.
	Header map[string]string
	// Audit, if not nil, records every request.
	Audit Audit
	Log   *slog.Logger
}

// Shared has a shared server's certificate, and the Authenticator of its users.
type Shared struct {
	Certificate   tls.Certificate
	Authenticator Authenticator
	// ClientCertificates says that the Authenticator accepts client certificates.
	ClientCertificates bool
}

// An Audit wraps a handler to record its requests.
type Audit interface {
	Watch(next http.Handler) http.Handler
}

// Access is what a client needs. A shared or plain server sets neither CA nor token.
type Access struct {
	URL   string `json:"url"`
	CA    []byte `json:"ca"` // PEM
	Token string `json:"token"`
}

// Server serves a handler to clients that have its token, or that an Authenticator accepts. It speaks TLS, except in plain
// mode.
type Server struct {
	access   Access
	guard    *guard
	handler  http.Handler
	header   map[string]string
	audit    Audit
	listener net.Listener
	http     *http.Server

	ending     context.Context // of watches
	endWatches context.CancelCauseFunc
}

// Listen binds the address. Without Shared and Plain, Listen also makes a certificate and a token. Close or Serve closes the
// listener.
func Listen(o Options) (*Server, error) {
	hosts, err := allowed(o.AllowedHosts)
	if err != nil {
		return nil, err
	}
	o.Flag = cmp.Or(o.Flag, "--listen")
	listener, ip, err := listen(o.Flag, o.Address, o.Shared != nil)
	if err != nil {
		return nil, err
	}
	hosts[ip.String()] = true
	s := &Server{
		access: Access{URL: "https://" + listener.Addr().String()}, handler: http.MaxBytesHandler(o.Handler, maxBody),
		header: o.Header, audit: o.Audit, listener: listener,
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case o.Shared != nil:
		err = s.share(o.Shared, hosts, config)
	case o.Plain != nil:
		config = nil
		s.guardPlain(hosts, o.Plain)
	default:
		err = s.guardAlone(hosts, config)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.guard.allowProxied = o.Proxied
	s.ending, s.endWatches = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler: s, TLSConfig: config,
		ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// guardAlone makes a certificate, and one token for all clients.
func (s *Server) guardAlone(hosts map[string]bool, config *tls.Config) error {
	ca, certificate, err := newCertificate(hosts)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	s.access.CA, s.access.Token = ca, NewToken()
	s.guard = &guard{hosts: hosts, scheme: "https", caller: oneToken(s.access.Token)}
	config.Certificates = []tls.Certificate{certificate}
	return nil
}

// guardPlain sets up plain HTTP: caller decides who may read, and there is no TLS.
func (s *Server) guardPlain(hosts map[string]bool, caller Authenticator) {
	s.access.URL = "http://" + s.listener.Addr().String()
	s.guard = &guard{hosts: hosts, scheme: "http", caller: caller}
}

// share uses the certificate of a shared server. Clients may use all names of the certificate for the server.
func (s *Server) share(o *Shared, hosts map[string]bool, config *tls.Config) error {
	leaf, err := x509.ParseCertificate(o.Certificate.Certificate[0])
	if err != nil {
		return fmt.Errorf("read the certificate of the server: %w", err)
	}
	for _, name := range leaf.DNSNames {
		hosts[plain(name)] = true
	}
	for _, ip := range leaf.IPAddresses {
		hosts[plain(ip.String())] = true
	}
	s.access.URL = "https://" + s.nameIn(leaf)
	s.guard = &guard{hosts: hosts, scheme: "https", caller: o.Authenticator}
	config.Certificates = []tls.Certificate{o.Certificate}
	if o.ClientCertificates {
		config.ClientAuth = tls.RequestClientCert // The path names the cluster, whose CA verifies the certificate later.
	}
	return nil
}

// nameIn returns the first name of a certificate that reaches this server, else the listener's address; both with the port.
func (s *Server) nameIn(leaf *x509.Certificate) string {
	address := s.listener.Addr().(*net.TCPAddr)
	for _, name := range leaf.DNSNames {
		if !strings.Contains(name, "*") && (!address.IP.IsLoopback() || name == "localhost") {
			return net.JoinHostPort(name, strconv.Itoa(address.Port))
		}
	}
	return address.String()
}

// listen refuses an address that other machines could reach, unless the server is shared.
func listen(flag, address string, shared bool) (net.Listener, netip.Addr, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, netip.Addr{}, fmt.Errorf("%s %q: write HOST:PORT, such as 127.0.0.1:6443; port 0 is any free one", flag, address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && (ip.IsLoopback() || shared):
	case shared:
		return nil, ip, fmt.Errorf("%s %q: write an address of this machine, such as 0.0.0.0:6443 for all of them", flag, address)
	default:
		return nil, ip, fmt.Errorf("%s %q: without --authorization, only 127.0.0.1, [::1] and localhost; "+
			"let the live cluster decide who may read (--authorization live-self or live), or use ssh -L", flag, address)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, ip, fmt.Errorf("%w; choose another address with %s, or port 0 for any free one", err, flag)
	}
	return listener, ip, nil
}

// NewToken makes a random token that cannot be guessed.
func NewToken() string {
	token := make([]byte, tokenBytes)
	_, _ = rand.Read(token) // never fails
	return base64.RawURLEncoding.EncodeToString(token)
}

// Access returns what clients need to reach the server.
func (s *Server) Access() Access { return s.access }

// ServeHTTP finds the user, and passes accepted requests to the handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range s.header {
		w.Header().Set(name, value)
	}
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

// Serve blocks until ctx ends. Call it once.
func (s *Server) Serve(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- s.shutdown(context.WithoutCancel(ctx)) })
	err := s.listenAndAnswer()
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.access.URL, err)
	}
	return <-stopped
}

func (s *Server) listenAndAnswer() error {
	if s.http.TLSConfig == nil {
		return s.http.Serve(s.listener)
	}
	return s.http.ServeTLS(s.listener, "", "")
}

func (s *Server) shutdown(ctx context.Context) error {
	s.endWatches(ErrEnding)
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close() // Do not wait for a client that does not read its answer.
	}
	return err
}

// Close stops listening. It works before, during and without Serve.
func (s *Server) Close() {
	s.endWatches(ErrEnding)
	_ = s.http.Close() // The error concerns only open connections, which end anyway.
	_ = s.listener.Close()
}
