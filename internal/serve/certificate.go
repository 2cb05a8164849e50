package serve

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"time"

	"k8s.io/client-go/util/cert"
)

// newCertificate makes a CA, and a certificate for names and addresses that is valid as long as the CA. The CA's key is
// discarded. The keys use an elliptic curve: client-go's own function makes two RSA keys, which takes a third of a second.
func newCertificate(hosts map[string]bool) (ca []byte, _ tls.Certificate, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "kuberewind", NotBefore: time.Now().Add(-time.Hour)}, caKey)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	der, err := sign(authority, caKey, key.Public(), hosts)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: authority.Raw})
	return ca, tls.Certificate{Certificate: [][]byte{der, authority.Raw}, PrivateKey: key}, nil
}

func sign(authority *x509.Certificate, by crypto.Signer, key crypto.PublicKey, hosts map[string]bool) ([]byte, error) {
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kuberewind server"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			c.IPAddresses = append(c.IPAddresses, net.IP(ip.AsSlice()))
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	return x509.CreateCertificate(rand.Reader, c, authority, key, by) // CreateCertificate chooses the serial number.
}
