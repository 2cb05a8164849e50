// Package ask reads the parameters of a request of the timeline. It does no I/O.
//
// It rejects the following with an error, which is the answer to the client:
//
//   - an unknown parameter, and a repeated parameter that may appear only once
//   - a query of more than 64 KiB
//   - a window that ends before it begins
package ask

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxQuery is larger than any filter that a person makes.
const maxQuery = 64 << 10

// repeatable lists the parameters that may appear several times.
var repeatable = []string{"namespace", "resource", "class"}

// Values are the parameters of a request.
type Values struct{ values url.Values }

// Read reads the query of a URL. known lists its allowed parameters.
func Read(query string, known []string) (Values, error) {
	if len(query) > maxQuery {
		return Values{}, TooLarge("the query has %d bytes, and may have %d: make the filter shorter", len(query), maxQuery)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Values{}, Bad("the query of the URL cannot be read: %v", err)
	}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return Values{}, Bad("%q is not a parameter of this request: use %s", Cut(name), strings.Join(known, ", "))
		case len(all) > 1 && !slices.Contains(repeatable, name):
			return Values{}, Bad("%s appears %d times: give it once", name, len(all))
		}
	}
	return Values{values}, nil
}

// Text returns a parameter, or "".
func (v Values) Text(name string) string { return v.values.Get(name) }

// All returns all values of a parameter that may appear several times.
func (v Values) All(name string) []string { return v.values[name] }

// Number returns a parameter as a number between least and most. If the parameter is missing, it returns without.
func (v Values) Number(name string, least, most, without int64) (int64, error) {
	text := v.Text(name)
	if text == "" {
		return without, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, Bad("%s=%s: use a number from %d to %d", name, Cut(text), least, most)
	}
	return n, nil
}

// Numbers returns a parameter that is a list of numbers.
func (v Values) Numbers(name string, most int) ([]int64, error) {
	text := v.Text(name)
	if text == "" {
		return nil, Bad("%s is missing: give numbers with commas between them", name)
	}
	parts := strings.Split(text, ",")
	if len(parts) > most {
		return nil, Bad("%s has %d numbers: give at most %d", name, len(parts), most)
	}
	numbers := make([]int64, len(parts))
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 1 {
			return nil, Bad("%s: %q is no number from 1", name, Cut(part))
		}
		numbers[i] = n
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// OneOf returns a parameter that must be one of some words. If the parameter is missing, it returns the first word.
func (v Values) OneOf(name string, words ...string) (string, error) {
	text := v.Text(name)
	switch {
	case text == "":
		return words[0], nil
	case !slices.Contains(words, text):
		return "", Bad("%s=%s: use one of %s", name, Cut(text), strings.Join(words, ", "))
	}
	return text, nil
}

// Bad returns the answer to an invalid request.
func Bad(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// BadCursor returns the answer to a cursor that no answer returned.
func BadCursor(cursor string) error {
	return Bad("cursor=%s is unknown: ask without it", Cut(cursor))
}

// TooLarge returns the answer to a request that is too long.
func TooLarge(format string, args ...any) error {
	return status(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, format, args...)
}

// NotFound returns the answer if the named thing does not exist.
func NotFound(format string, args ...any) error {
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, format, args...)
}

// Gone returns the answer if the record no longer holds something, or never held it.
func Gone(format string, args ...any) error {
	return status(http.StatusGone, metav1.StatusReasonGone, format, args...)
}

func status(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// Cut shortens a client's text for a message.
func Cut(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
