package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// A target is a server that is asked, over one version of HTTP.
type target struct {
	name   string // as tables show it
	url    string // of the API's root
	origin string // of the process
	token  string
	pid    func() int
	client *http.Client
}

// The versions of HTTP.
const (
	http1 = "HTTP/1.1"
	http2 = "HTTP/2"
)

var protocols = []string{http1, http2}

// newClient is one that keeps its connections, and wants no compression.
func newClient(protocol string, ca []byte) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	wanted := new(http.Protocols)
	wanted.SetHTTP1(protocol == http1)
	wanted.SetHTTP2(protocol == http2)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: wanted, DisableCompression: true, MaxIdleConnsPerHost: watchers + 1,
	}}
}

// The measured quantities of an answer.
const (
	onTheClock = "time"
	serverCPU  = "CPU of the server"
	length     = "length"
)

var quantities = []measure.Quantity{{Name: onTheClock, Unit: "ms"}, {Name: serverCPU, Unit: "ms"}, {Name: length, Unit: "bytes"}}

// A question is what a server is asked.
type question struct {
	path   string // below the API's root, with its query
	accept string // JSON, if empty
	// enough ends an answer that has no end of its own; nil for others.
	enough func() *search
}

var errAnswer = errors.New("this is not the answer that is measured")

// open sends a question, and returns when the answer begins.
func (t *target) open(ctx context.Context, url, accept string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if accept == "" {
		accept = "application/json"
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("Authorization", "Bearer "+t.token)
	response, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "" {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		response.Body.Close()
		return nil, fmt.Errorf("%w: %s of %s %s: %s", errAnswer, response.Status, t.name, url, text)
	}
	return response, nil
}

// ask reads an answer to its end, and gives its length.
func (t *target) ask(ctx context.Context, q question) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := t.open(ctx, t.url+q.path, q.accept)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if q.enough == nil {
		return io.Copy(io.Discard, response.Body)
	}
	s := q.enough()
	n, err := io.Copy(s, response.Body)
	if errors.Is(err, errFound) {
		return n, nil
	}
	return n, fmt.Errorf("%w: it ended before %q: %w", errAnswer, s.text, err)
}

// measured asks some questions one after the other, and gives what one of them cost.
func (t *target) measured(ctx context.Context, questions []question) (measure.Values, error) {
	before, err := measure.CPUOf(t.pid())
	if err != nil {
		return nil, err
	}
	bytes, begun := int64(0), time.Now()
	for _, q := range questions {
		n, err := t.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		bytes += n
	}
	took := time.Since(begun)
	after, err := measure.CPUOf(t.pid())
	n := float64(len(questions))
	return measure.Values{onTheClock: millis(took) / n, serverCPU: millis(after-before) / n, length: float64(bytes) / n}, err
}

// cold makes our server forget its rebuilt instants.
func (t *target) cold(ctx context.Context) error {
	response, err := t.open(ctx, t.origin+coldPath, "")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// heap is what a server holds after it has collected its garbage. Objects in pools survive one collection.
func (t *target) heap(ctx context.Context) (bytes float64, err error) {
	for range 2 {
		if bytes, err = t.collected(ctx); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

// collected reads the line "# HeapAlloc = N" of a profile of the heap.
func (t *target) collected(ctx context.Context) (float64, error) {
	response, err := t.open(ctx, t.origin+heapPath+"?gc=1&debug=1", "")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(text), "# HeapAlloc = ")
	number, _, _ := strings.Cut(after, "\n")
	if !found {
		return 0, fmt.Errorf("%w: the profile of %s names no HeapAlloc", errAnswer, t.name)
	}
	return strconv.ParseFloat(number, 64)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
