package delegate

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// A credential is what a client authenticates with: a token, or else a certificate chain.
type credential struct {
	token string
	chain []*x509.Certificate
}

// credentialOf returns the credential of a request, nil if it has none.
func credentialOf(r *http.Request, certificates bool) *credential {
	if token := serve.Bearer(r); token != "" {
		return &credential{token: token}
	}
	if certificates && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return &credential{chain: r.TLS.PeerCertificates}
	}
	return nil
}

// digest returns the cache key of a question asked with this credential.
func (c *credential) digest(key []byte, uid string, question []string) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%q %q %q", uid, question, c.token)
	for _, certificate := range c.chain {
		fmt.Fprintf(mac, " %x", certificate.Raw)
	}
	return string(mac.Sum(nil))
}
