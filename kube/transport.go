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

// newHTTPClient makes an HTTP client that shares its connections with no other client. It also returns a function that
// closes all of them.
func newHTTPClient(config *rest.Config) (*http.Client, func(), error) {
	config = rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	// client-go shares one transport between equal configs. The new dialer makes this config different from all others.
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

// NotJSONError is returned if an answer has a success status and is not JSON: for example, a login page, or a proxy's error
// page.
type NotJSONError struct {
	Host        string
	Path        string
	Status      string // for example "200 OK"
	ContentType string
	Head        string // the first bytes of the body
}

func (e *NotJSONError) Error() string {
	return fmt.Sprintf("%s answered %s with %s and content type %q where JSON was expected; it begins with %q (is this the address of an API server, or of a proxy that requires a login?)",
		e.Host, e.Path, e.Status, e.ContentType, e.Head)
}

// headBytes is how many bytes of an answer that is not JSON a message quotes.
const headBytes = 120

// jsonOnly rejects successful answers that neither have a JSON content type nor begin like JSON. It decompresses answers
// that are compressed although the request did not ask for that.
type jsonOnly struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*jsonOnly)(nil)

// WrappedRoundTripper returns the inner transport to client-go.
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
		// The index of OpenAPI v3 has the content type text/plain.
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

// readHead reads up to headBytes of a body.
func readHead(body io.Reader) []byte {
	head := make([]byte, headBytes)
	n, _ := io.ReadFull(body, head)
	return head[:n]
}

// replayed is a body whose first bytes were already read.
type replayed struct {
	io.Reader
	io.Closer
}

// isJSON accepts all names of JSON. It also accepts a missing content type: then the decoder decides.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// gzipMembers reads gzip members one after the other. A gzip.Reader would withhold the end of one member until the next
// begins. If a watch flushes a member for each event, each event would then arrive together with the next one.
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

// open begins the next member if none is open. At the end of the source, it returns io.EOF.
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
