package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // every way to authenticate that a kubeconfig can name
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/version"
)

const (
	// defaultQPS and defaultBurst let a restarted recorder resume hundreds of watches within seconds, and protect the server
	// from a storm of relists. client-go's defaults of 5 and 10 are meant for a controller with a few informers.
	defaultQPS   = 200
	defaultBurst = 400

	// defaultMaxFrame is far above etcd's limit (1.5 MiB) and that of client-go's own decoder (16 MiB). Conversion and
	// aggregated APIs can make larger objects.
	defaultMaxFrame = 64 << 20

	// defaultMaxPage equals the default size of the recorder's queue. If a server respects the requested limit, a page is
	// larger than this only if its objects are large. Then [ListWatch.Page] requests fewer objects.
	defaultMaxPage = 256 << 20
)

// Options are the knobs of a [Client]; the zero value of each is its default.
type Options struct {
	UserAgent     string  // kuberewind/<version>
	QPS           float32 // requests a second, unless the rest.Config sets it: 200
	Burst         int     // requests at once, unless the rest.Config sets it: 400
	MaxFrameBytes int64   // of one watch event or list item: 64 MiB
	MaxPageBytes  int64   // of one page of a list, in memory: 256 MiB, and no less than a frame
}

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = "kuberewind/" + version.String()
	}
	if o.QPS == 0 {
		o.QPS = defaultQPS
	}
	if o.Burst == 0 {
		o.Burst = defaultBurst
	}
	if o.MaxFrameBytes == 0 {
		o.MaxFrameBytes = defaultMaxFrame
	}
	if o.MaxPageBytes == 0 {
		o.MaxPageBytes = defaultMaxPage
	}
	o.MaxPageBytes = max(o.MaxPageBytes, o.MaxFrameBytes)
	return o
}

// Client is a connection to one API server. Its methods can be called from any goroutine.
type Client struct {
	config    *rest.Config
	options   Options
	rest      *rest.RESTClient
	discovery *discovery.DiscoveryClient
	http      *http.Client
	hangUp    func()
}

// NewClient makes a client with its own connections. It sends no request and does not change config. It returns an error if
// the config's TLS or authentication cannot be set up.
func NewClient(config *rest.Config, options Options) (*Client, error) {
	c := &Client{options: options.withDefaults()}
	c.config = c.adapt(config)
	var err error
	if c.http, c.hangUp, err = newHTTPClient(c.config); err != nil {
		return nil, fmt.Errorf("connection to %s: %w", config.Host, err)
	}
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(c.config, c.http); err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	c.discovery = discovery.NewDiscoveryClient(c.rest)
	return c, nil
}

// adapt returns a copy of the config with the recorder's settings.
func (c *Client) adapt(config *rest.Config) *rest.Config {
	adapted := rest.CopyConfig(config)
	adapted.UserAgent = c.options.UserAgent
	adapted.ContentConfig = rest.ContentConfig{
		AcceptContentTypes:   "application/json",
		ContentType:          "application/json",
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}
	// A limit on the whole response would end every watch.
	adapted.Timeout = 0
	if adapted.QPS == 0 {
		adapted.QPS = c.options.QPS
	}
	if adapted.Burst == 0 {
		adapted.Burst = c.options.Burst
	}
	if adapted.WarningHandler == nil && adapted.WarningHandlerWithContext == nil {
		adapted.WarningHandler = rest.NoWarnings{}
	}
	return adapted
}

// Fresh returns a client with the same configuration and rate limit that shares no connection with this one. Another API
// server behind the same address may answer it, with a longer history. The caller closes it.
func (c *Client) Fresh() (*Client, error) {
	config := rest.CopyConfig(c.config)
	config.RateLimiter = c.rest.GetRateLimiter()
	return NewClient(config, c.options)
}

// Close closes all connections. Open streams end with an error.
func (c *Client) Close() {
	c.hangUp()
}

// Host returns the address of the API server.
func (c *Client) Host() string { return c.config.Host }

// raw sends a GET and returns the body.
func (c *Client) raw(ctx context.Context, path, accept string) ([]byte, error) {
	result := c.rest.Get().RequestURI(path).SetHeader("Accept", accept).Do(ctx)
	body, err := result.Raw()
	if err != nil {
		// Error, unlike Raw, reads the Status that the server sent.
		return nil, explain(path, result.Error())
	}
	return body, nil
}

// explain adds the operation to the error, unless the error already has it. If the server's answer was no Status, client-go
// omits the answer; explain adds it. It also adds advice if the kubeconfig does not fit the server.
func explain(what string, err error) error {
	if notJSON := (*NotJSONError)(nil); errors.As(err, &notJSON) {
		return notJSON
	}
	if large := (*AnswerTooLargeError)(nil); errors.As(err, &large) {
		return large
	}
	advice := advise(err)
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	if said := strings.TrimSpace(cause.Message); ok && !strings.Contains(err.Error(), said) {
		err = fmt.Errorf("%w: %.*q", err, headBytes, said)
	}
	if advice != "" {
		return fmt.Errorf("%s: %w: %s", what, err, advice)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// advise returns advice about a kubeconfig that does not fit the server, or "" for other errors.
func advise(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the credentials of this context of the kubeconfig; renew them"
	case errors.As(err, &authority):
		return "the certificate-authority of this cluster in the kubeconfig did not sign the server's certificate"
	case errors.As(err, &name):
		return "use an address that the certificate names, or set tls-server-name of this cluster in the kubeconfig to such a name"
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, new(*net.DNSError)):
		return "check that the API server runs and that this is its address"
	}
	return ""
}
