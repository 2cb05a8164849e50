package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates are the files that the API servers show and sign with. One authority signs for all API servers of a
// control plane, and stays over their restarts, so that a kubeconfig stays valid.
type certificates struct {
	authority          string // certificate of the authority, which clients trust
	serving            string // certificate of the API servers
	servingKey         string
	serviceAccountsKey string // signs service account tokens
	authorityPEM       []byte
}

// certificateLife is longer than any test or demo; clocks may differ by an hour.
const certificateLife, clockSkew = 365 * 24 * time.Hour, time.Hour

func newCertificates(dir string) (*certificates, error) {
	c := &certificates{
		authority:          filepath.Join(dir, "ca.crt"),
		serving:            filepath.Join(dir, "apiserver.crt"),
		servingKey:         filepath.Join(dir, "apiserver.key"),
		serviceAccountsKey: filepath.Join(dir, "service-accounts.key"),
	}
	authority, authorityKey, err := c.makeAuthority()
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.makeServing(authority, authorityKey), c.makeServiceAccountsKey())
}

func (c *certificates) makeAuthority() (*x509.Certificate, crypto.Signer, error) {
	template := certificateTemplate("kuberewind control plane", 1)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	c.authorityPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return template, key, os.WriteFile(c.authority, c.authorityPEM, 0o644)
}

func (c *certificates) makeServing(authority *x509.Certificate, authorityKey crypto.Signer) error {
	template := certificateTemplate("kube-apiserver", 2)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.ParseIP(loopback)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), authorityKey)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(c.serving, "CERTIFICATE", der), writeKey(c.servingKey, key))
}

func (c *certificates) makeServiceAccountsKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(c.serviceAccountsKey, key)
}

func certificateTemplate(name string, serial int64) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(certificateLife),
	}
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
