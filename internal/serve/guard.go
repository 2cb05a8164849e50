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

// UserName is who has the token: on loopback, all are one user.
const UserName = "kuberewind:local"

// An Authenticator finds who sends a request.
type Authenticator interface {
	// Authenticate gives the request with its user in the context. An error that is a Status is the answer.
	Authenticate(r *http.Request) (*http.Request, error)
}

// guard decides which requests pass.
type guard struct {
	hosts  map[string]bool
	scheme string // of its own origin
	caller Authenticator
	passed bool // Options.PassedOn
}

// allowed are the names of loopback, and the named ones.
func allowed(names []string) (map[string]bool, error) {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	for _, name := range names {
		host := plain(strings.Trim(name, "[]"))
		if _, err := netip.ParseAddr(host); err != nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			return nil, fmt.Errorf("--allowed-hosts %q is no name of a host: write the name alone, such as jump.example.com; its port does not matter", name)
		}
		hosts[host] = true
	}
	return hosts, nil
}

// plain is the one form of a name or an address.
func plain(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String()
	}
	return strings.ToLower(host)
}

// hostOf is the name in a Host header.
func hostOf(header string) string {
	host, _, err := net.SplitHostPort(header)
	if err != nil { // without a port
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return plain(host)
}

// admit gives the request as the handler may see it, or what to answer instead.
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
			"the host %.253q is not served: if clients may call the server by this name, start replay serve with --allowed-hosts and the name", hostOf(r.Host)))
	case !g.sameOrigin(r) && !g.passedOn(r):
		return status(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
			"requests of web pages of another origin (%.253q) are not served%s", r.Header.Get("Origin"), g.advice()))
	}
	return nil
}

// advice is for who runs a server such as Headlamp's. It is true of every request that passedOn refuses.
func (g *guard) advice() string {
	if !g.passed {
		return ""
	}
	return ": a server such as Headlamp's must add a bearer token; if its page has another host than localhost, start replay serve with --allowed-hosts and that host"
}

// passedOn reports whether a server passed on what its own page asks. The token alone does not show that: Headlamp's server adds it to the
// WebSockets of every web page that finds the server. So the page must have a host that is allowed, or none, as the desktop application's.
func (g *guard) passedOn(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if !g.passed || Bearer(r) == "" || len(origins) != 1 {
		return false
	}
	return origins[0] == desktop || g.hosts[pageHost(origins[0])]
}

// desktop is the Origin of Headlamp's desktop application: its page is a file.
const desktop = "file://"

// pageHost is the host in the Origin of a web page, "" if it is no such Origin as browsers send.
func pageHost(origin string) string {
	page, err := url.Parse(origin)
	if err != nil || (page.Scheme != "http" && page.Scheme != "https") || origin != page.Scheme+"://"+page.Host {
		return ""
	}
	return plain(page.Hostname())
}

// sameOrigin reports whether no web page asks, or one of this server. Headlamp sends the URL of the server, with its path.
func (g *guard) sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && origin.Scheme == g.scheme && strings.EqualFold(origin.Host, r.Host)
}

// Bearer is the bearer token of a request, "" if it has none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// oneToken takes who has the token of this server.
type oneToken string

// Authenticate implements Authenticator.
func (t oneToken) Authenticate(r *http.Request) (*http.Request, error) {
	if subtle.ConstantTimeCompare([]byte(Bearer(r)), []byte(t)) != 1 {
		return nil, status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized,
			"the token is missing, or it is not that of this server: each start of replay serve makes a new one; replay kubeconfig has it")
	}
	return Local(r), nil
}

// Local is the request with the one user of loopback in its context.
func Local(r *http.Request) *http.Request {
	caller := &user.DefaultInfo{Name: UserName, Groups: []string{user.AllAuthenticated}}
	return r.WithContext(request.WithUser(r.Context(), caller))
}

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// refusal answers with the Status of an error.
func refusal(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { WriteError(w, err) })
}

// WriteError answers with the Status of an error. One that has none is a fault of the server.
func WriteError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	s := known.Status()
	WriteStatus(w, &s)
}

// WriteStatus answers with a Status, as clients of Kubernetes expect it.
func WriteStatus(w http.ResponseWriter, s *metav1.Status) {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	WriteJSON(w, int(s.Code), s)
}

// WriteJSON answers with a value. An answer that no cache may store has set its header before.
func WriteJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-cache, private")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // A client that is gone needs no answer.
}
