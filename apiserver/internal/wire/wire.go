package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// miscellaneous is the code of a warning for people (RFC 7234, 5.5.7).
const miscellaneous = 299

// JSON is the content type of every body except a plain 404.
const JSON = "application/json"

// Value writes a value as JSON.
func Value(w http.ResponseWriter, code int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		Error(w, err)
		return
	}
	Body(w, code, body)
}

// Body writes encoded JSON. It forbids clients to cache the answer: otherwise RFC 9111 would let them choose a lifetime.
func Body(w http.ResponseWriter, code int, body []byte) {
	jsonHeader(w)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // The client may be gone.
}

func jsonHeader(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", JSON)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-cache, private")
	}
}

// Status returns the Status of an error: its own metav1.Status if it has one, else 500 InternalError.
func Status(err error) *metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		if errors.Is(err, context.DeadlineExceeded) {
			known = apierrors.NewTimeoutError(err.Error(), 0)
		} else {
			known = apierrors.NewInternalError(err)
		}
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// Error writes an error as a Status.
func Error(w http.ResponseWriter, err error) {
	status := Status(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	Value(w, int(status.Code), status)
}

// Unserved writes an API server's answer for a path that it does not serve.
func Unserved(w http.ResponseWriter) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}

// Warn adds a Warning header, which kubectl prints. Call it before the answer is written.
func Warn(w http.ResponseWriter, text string) {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	header, err := utilnet.NewWarningHeader(miscellaneous, "-", text)
	if err == nil { // otherwise the text has control characters, which are invalid in a header
		w.Header().Add("Warning", header)
	}
}
