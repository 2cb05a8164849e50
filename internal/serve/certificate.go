package serve

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"time"

	"k8s.io/client-go/util/cert"
)

// certifiedFor is longer than a server runs.
const certifiedFor = 10 * 365 * 24 * time.Hour

// newCertificate makes a CA, and a certificate for names and addresses. Nobody keeps the CA's key.
func newCertificate(hosts map[string]bool) (ca []byte, _ tls.Certificate, err error) {
	o := cert.SelfSignedCertKeyOptions{Host: "localhost", MaxAge: certifiedFor}
	for host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			o.AlternateIPs = append(o.AlternateIPs, net.IP(ip.AsSlice()))
		} else {
			o.AlternateDNS = append(o.AlternateDNS, host)
		}
	}
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(o)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	// Below the server's certificate stands that of the CA.
	if _, ca = pem.Decode(chain); len(ca) == 0 {
		return nil, tls.Certificate{}, errors.New("the certificate comes without its CA")
	}
	pair, err := tls.X509KeyPair(chain, key)
	return ca, pair, err
}
