package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// maxAnswer bounds an answer that client-go holds whole: discovery, /version, OpenAPI, and any error. The aggregated
// discovery of 3,000 resources has about 2 MB. The OpenAPI document of the largest group of kube-apiserver has about 5 MB.
const maxAnswer = 64 << 20

// AnswerTooLargeError is returned if an answer is larger than any API server's answer at this path.
type AnswerTooLargeError struct {
	Host  string
	Path  string
	Limit int64
}

func (e *AnswerTooLargeError) Error() string {
	return fmt.Sprintf("the answer of %s to %s is larger than %d bytes (if an aggregated API serves it, repair or remove its APIService)", e.Host, e.Path, e.Limit)
}

// framedKey marks the context of a request whose answer a decoder reads in bounded pieces.
type framedKey struct{}

func framed(ctx context.Context) context.Context { return context.WithValue(ctx, framedKey{}, true) }

// bounded limits every answer to maxAnswer, except the answers that a decoder bounds. It counts bytes after decompression.
type bounded struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*bounded)(nil)

// WrappedRoundTripper returns the inner transport to client-go.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil || request.Context().Value(framedKey{}) != nil && isSuccess(response) {
		return response, err
	}
	response.Body = &boundedBody{
		ReadCloser: response.Body, left: maxAnswer + 1,
		excess: &AnswerTooLargeError{Host: request.URL.Host, Path: request.URL.Path, Limit: maxAnswer},
	}
	return response, nil
}

func isSuccess(response *http.Response) bool {
	return response.StatusCode >= 200 && response.StatusCode <= 299
}

// boundedBody returns excess as its error when left reaches 0.
type boundedBody struct {
	io.ReadCloser
	left   int64
	excess error
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		return n, b.excess
	}
	return n, err
}
