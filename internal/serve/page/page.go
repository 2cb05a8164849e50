package page

import (
	"crypto/tls"
	"log/slog"
	"net/http"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// Flag is the flag that sets the address.
const Flag = "--page-listen"

// Options of the page's listener.
type Options struct {
	// Address is HOST:PORT. Without Shared, the host must be loopback. Port 0 selects a free port.
	Address string
	// Shared serves users of live clusters instead of holders of a token. It can be nil only on loopback.
	Shared *Shared
	// AllowedHosts are names of the server that clients may use, in addition to those of loopback.
	AllowedHosts []string
	// Codes exchanges codes for tokens. It is not used with Shared.
	Codes *Codes
	// Web is the page without data.
	Web http.Handler
	// Timelines answer the page's requests, /timeline/v1/…. With Shared there is one for each cluster, by its UID, which
	// knows no other cluster; else only the key "".
	Timelines map[string]http.Handler
	// Sessions answer /session/v1/….
	Sessions http.Handler
	// Audit, if not nil, records every request.
	Audit serve.Audit
	Log   *slog.Logger
}

// Shared has the certificate of the page's listener, and the live clusters that decide who may read.
type Shared struct {
	Certificate tls.Certificate
	Live        Live
}

// policy lets a browser run the script of the page, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers are in every answer. The bundle has no data and may be cached; it replaces Cache-Control itself.
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
