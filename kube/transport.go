package kube

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// newHTTPClient makes an HTTP client whose connections are shared with no other, and
// a function that closes all of them.
func newHTTPClient(config *rest.Config) (*http.Client, func(), error) {
	config = rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	// client-go keeps one transport for configs that are alike; a dialer of its own
	// makes this config unlike all others.
	dialer := connrotation.NewDialer(dial)
	if config.Transport == nil {
		config.Dial = dialer.DialContext
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bounded{&jsonOnly{next}} })
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, err
	}
	hangUp := func() {
		utilnet.CloseIdleConnectionsFor(transport)
		dialer.CloseAll()
	}
	return &http.Client{Transport: transport}, hangUp, nil
}

// NotJSONError is an answer that says success and is not JSON: a login page, a
// proxy's apology, something that is not an API server.
type NotJSONError struct {
	Host        string
	Path        string
	Status      string // for example "200 OK"
	ContentType string
	Head        string // the first bytes of the body
}

func (e *NotJSONError) Error() string {
	return fmt.Sprintf("%s answered %s with %s and content type %q where an API server sends JSON; it begins with %q (is the address that of an API server, or of a proxy that wants a login?)",
		e.Host, e.Path, e.Status, e.ContentType, e.Head)
}

// headBytes is how much of an answer that is not JSON is quoted.
const headBytes = 120

// jsonOnly rejects successful answers that are neither called JSON nor look like it. It unpacks answers that are compressed
// although the request did not ask for that.
type jsonOnly struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*jsonOnly)(nil)

// WrappedRoundTripper lets client-go find the transport beneath.
func (j *jsonOnly) WrappedRoundTripper() http.RoundTripper { return j.next }

// RoundTrip implements http.RoundTripper.
func (j *jsonOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := j.next.RoundTrip(request)
	if err != nil || !isSuccess(response) {
		return response, err
	}
	if response.Header.Get("Content-Encoding") == "gzip" {
		response.Body = &gzipMembers{source: response.Body, buffered: bufio.NewReader(response.Body)}
		response.Header.Del("Content-Encoding")
		response.ContentLength = -1
	}
	if isJSON(response.Header.Get("Content-Type")) {
		return response, nil
	}
	head := readHead(response.Body)
	if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		// The index of OpenAPI v3 calls itself text/plain.
		response.Body = &replayed{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
		return response, nil
	}
	defer response.Body.Close()
	return nil, &NotJSONError{
		Host:        request.URL.Host,
		Path:        request.URL.Path,
		Status:      response.Status,
		ContentType: response.Header.Get("Content-Type"),
		Head:        string(head),
	}
}

// readHead reads the beginning of a body, as far as it comes.
func readHead(body io.Reader) []byte {
	head := make([]byte, headBytes)
	n, _ := io.ReadFull(body, head)
	return head[:n]
}

// replayed is a body whose beginning was read already.
type replayed struct {
	io.Reader
	io.Closer
}

// isJSON takes JSON by any of its names. No content type at all is left to the
// decoder, which knows JSON when it sees it.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// gzipMembers reads gzip members one after the other. A gzip.Reader would hold back the end of one member until the next
// begins. In a watch that is flushed by members, each event would then come with the next one.
type gzipMembers struct {
	source   io.Closer
	buffered *bufio.Reader
	unpacker *gzip.Reader
	between  bool // the last member was read to its end
}

// Read implements io.Reader.
func (m *gzipMembers) Read(p []byte) (int, error) {
	for {
		if err := m.open(); err != nil {
			return 0, err
		}
		n, err := m.unpacker.Read(p)
		if errors.Is(err, io.EOF) {
			m.between, err = true, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// open begins the next member if there is none at hand. It is io.EOF if there is none.
func (m *gzipMembers) open() (err error) {
	switch {
	case m.unpacker == nil:
		m.unpacker, err = gzip.NewReader(m.buffered)
	case m.between:
		err = m.unpacker.Reset(m.buffered)
	default:
		return nil
	}
	if err == nil {
		m.between = false
		m.unpacker.Multistream(false)
	}
	return err
}

// Close implements io.Closer.
func (m *gzipMembers) Close() error { return m.source.Close() }
