package serve

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// UserName is the user of all clients with the token: on loopback, all clients are one user.
const UserName = "kuberewind:local"

// An Authenticator finds the user of a request.
type Authenticator interface {
	// Authenticate returns the request with its user in the context. If the error is a Status, it is the answer.
	Authenticate(r *http.Request) (*http.Request, error)
}

// guard decides which requests reach the handler.
type guard struct {
	hosts        map[string]bool
	scheme       string // of the server's own origin
	caller       Authenticator
	allowProxied bool // Options.Proxied
}

// allowed returns the names of loopback together with the given names.
func allowed(names []string) (map[string]bool, error) {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	for _, name := range names {
		host := plain(strings.Trim(name, "[]"))
		if _, err := netip.ParseAddr(host); err != nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			return nil, fmt.Errorf("--allowed-hosts %q is not a host name: write only the name, such as jump.example.com; its port does not matter", name)
		}
		hosts[host] = true
	}
	return hosts, nil
}

// plain returns the canonical form of a name or an address.
func plain(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String()
	}
	return strings.ToLower(host)
}

// hostOf returns the name in a Host header.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil { // without a port
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return plain(host)
}

// admit returns the request for the handler, or the handler of the refusal.
func (g *guard) admit(r *http.Request) (*http.Request, http.Handler) {
	admitted, err := r, g.refuse(r)
	if err == nil {
		admitted, err = g.caller.Authenticate(r)
	}
	if err != nil {
		admitted = r
	}
	admitted = admitted.Clone(admitted.Context())
	admitted.Header.Del("Authorization")
	if err != nil {
		return admitted, refusal(err)
	}
	return admitted, nil
}

func (g *guard) refuse(r *http.Request) error {
	switch {
	case !g.hosts[hostOf(r.Host)]:
		return status(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
			"the host %.253q is not allowed: if clients may use this name for the server, start replay serve with --allowed-hosts and the name", hostOf(r.Host)))
	case !g.sameOrigin(r) && !g.proxied(r):
		return status(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
			"requests of web pages of another origin (%.253q) are not served%s", r.Header.Get("Origin"), g.advice()))
	}
	return nil
}

// advice is for the operator of a server such as Headlamp's. It fits every request that proxied refuses.
func (g *guard) advice() string {
	if !g.allowProxied {
		return ""
	}
	return ": a server such as Headlamp's must add a bearer token; if its page has another host than localhost, start replay serve with --allowed-hosts and that host"
}

// proxied reports whether a server forwarded a request of its own page. The token alone does not prove that: Headlamp's
// server adds it to the WebSockets of every web page that reaches it. Therefore, the page must have an allowed host, or be
// a file, as the desktop application's page is.
func (g *guard) proxied(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if !g.allowProxied || Bearer(r) == "" || len(origins) != 1 {
		return false
	}
	return origins[0] == desktop || g.hosts[pageHost(origins[0])]
}

// desktop is the Origin of Headlamp's desktop application, whose page is a file.
const desktop = "file://"

// pageHost returns the host in the Origin of a web page, "" if browsers send no such Origin.
func pageHost(origin string) string {
	page, err := url.Parse(origin)
	if err != nil || (page.Scheme != "http" && page.Scheme != "https") || origin != page.Scheme+"://"+page.Host {
		return ""
	}
	return plain(page.Hostname())
}

// sameOrigin reports whether the request comes from no web page, or from a page of this server. Headlamp sends the URL of
// the server, with its path.
func (g *guard) sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && origin.Scheme == g.scheme && strings.EqualFold(origin.Host, r.Host)
}

// Bearer returns the bearer token of a request, "" if it has none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// oneToken accepts clients that have the token of this server.
type oneToken string

// Authenticate implements Authenticator.
func (t oneToken) Authenticate(r *http.Request) (*http.Request, error) {
	if subtle.ConstantTimeCompare([]byte(Bearer(r)), []byte(t)) != 1 {
		return nil, status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized,
			"the token is missing, or belongs to another server: each start of replay serve makes a new token; replay kubeconfig writes it")
	}
	return Local(r), nil
}

// Local returns the request with the single user of loopback in its context.
func Local(r *http.Request) *http.Request {
	caller := &user.DefaultInfo{Name: UserName, Groups: []string{user.AllAuthenticated}}
	return r.WithContext(request.WithUser(r.Context(), caller))
}

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// refusal returns a handler that answers with the Status of an error.
func refusal(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { WriteError(w, err) })
}

// WriteError answers with the Status of an error. An error without a Status is an internal error of the server.
func WriteError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	s := known.Status()
	WriteStatus(w, &s)
}

// WriteStatus answers with a Status in the form that Kubernetes clients expect.
func WriteStatus(w http.ResponseWriter, s *metav1.Status) {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	WriteJSON(w, int(s.Code), s)
}

// WriteJSON answers with a value. To forbid caches to store the answer, set the Cache-Control header before.
func WriteJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-cache, private")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // The client may be gone.
}
