package serve

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// UserName is who has the token: on loopback, all are one user.
const UserName = "kuberewind:local"

// guard decides which requests pass.
type guard struct {
	hosts map[string]bool
	token string
}

// allowed are the names of loopback, and those that were named.
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
	refused := g.refuse(r)
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if refused != nil {
		return r, refused
	}
	caller := &user.DefaultInfo{Name: UserName, Groups: []string{user.AllAuthenticated}}
	return r.WithContext(request.WithUser(r.Context(), caller)), nil
}

func (g *guard) refuse(r *http.Request) http.Handler {
	switch {
	case !g.hosts[hostOf(r.Host)]:
		return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
			"the host %.253q is not served: if clients may call the server by this name, start replay serve with --allowed-hosts and the name", hostOf(r.Host)))
	case !sameOrigin(r):
		return refusal(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(
			"requests of web pages of another origin (%.253q) are not served", r.Header.Get("Origin")))
	case !g.hasToken(r):
		return refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized,
			"the token is missing, or it is not that of this server: each start of replay serve makes a new one; replay kubeconfig has it")
	}
	return nil
}

// sameOrigin reports whether no web page asks, or one of this server. Headlamp sends the URL of the server, with its path.
func sameOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && origin.Scheme == "https" && strings.EqualFold(origin.Host, r.Host)
}

func (g *guard) hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(token)), []byte(g.token)) == 1
}

// refusal answers with a Status.
func refusal(code int, reason metav1.StatusReason, message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteStatus(w, &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
	})
}

// WriteStatus answers with a Status, as clients of Kubernetes expect it.
func WriteStatus(w http.ResponseWriter, s *metav1.Status) {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s) // A client that is gone needs no answer.
}
