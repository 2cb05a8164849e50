package page

import (
	"crypto/tls"
	"log/slog"
	"net/http"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// Flag is the flag that sets the address.
const Flag = "--page-listen"

// Options say how to serve the page.
type Options struct {
	// Address is where to listen, HOST:PORT. Without Shared the host is of loopback. Port 0 is any free one.
	Address string
	// Shared serves others than who has a token of a code. It is nil on loopback, unless live authorization is wished there, too.
	Shared *Shared
	// AllowedHosts are names by which clients may call the server, besides those of loopback.
	AllowedHosts []string
	// Codes give tokens. They are not used with Shared.
	Codes *Codes
	// Web is the page without data.
	Web http.Handler
	// Timelines answer what the page asks, /timeline/v1/…: with Shared one for each cluster by its UID, which knows no other; else the one of "".
	Timelines map[string]http.Handler
	// Sessions answer /session/v1/….
	Sessions http.Handler
	// Audit writes down every request, if it is not nil.
	Audit serve.Audit
	Log   *slog.Logger
}

// Shared is how the page is known to others, and who says what they may read.
type Shared struct {
	Certificate tls.Certificate
	Live        Live
}

// policy lets a browser run the script of the page, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers are those of every answer. The bundle, which has no data, may be kept: it says so itself.
var headers = map[string]string{
	"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
}

// Listen binds the address. The server's Close or Serve closes it.
func Listen(o Options) (*serve.Server, error) {
	d := &door{callers: o.Codes}
	h := &handler{door: d, codes: o.Codes, web: o.Web, timelines: o.Timelines, sessions: o.Sessions}
	front := serve.Options{
		Address: o.Address, Flag: Flag, AllowedHosts: o.AllowedHosts, Plain: d, Handler: h, Header: headers, Audit: o.Audit, Log: o.Log,
	}
	if o.Shared != nil {
		d.callers, d.live, h.codes = o.Shared.Live, o.Shared.Live, nil
		front.Shared = &serve.Shared{Certificate: o.Shared.Certificate, Authenticator: d}
	}
	return serve.Listen(front)
}
