package when

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

const forms = "use a time (18:45, yesterday 14:05, 2026-11-24 18:45, 2026-11-24T18:45:00Z), " +
	"a time before now (10m, 2d12h ago), Unix seconds, seq:N, rv:N or now"

// longest is the maximum length, in bytes, of a text for which a correction is searched: longer texts take seconds.
const longest = 100

// A Clock holds the current time, and the zone of times without a zone.
type Clock struct {
	Now  time.Time
	Zone *time.Location
}

// Parse parses an instant. The error is history.ErrInstant; it suggests the corrected form or lists the forms.
func (c Clock) Parse(text string) (history.Instant, error) {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		return history.Instant{}, fmt.Errorf("%w: %s", history.ErrInstant, forms)
	}
	instant, err := c.read(text)
	if !errors.Is(err, errForm) {
		return instant, err
	}
	if better := c.corrected(text); better != "" {
		return history.Instant{}, fmt.Errorf("%w: %q: did you mean %q?", history.ErrInstant, text, better)
	}
	return history.Instant{}, fmt.Errorf("%w: %q: %s", history.ErrInstant, text, forms)
}

// errForm means that a text has none of the forms.
var errForm = fmt.Errorf("%w: unknown form", history.ErrInstant)

// read parses an instant in one of the forms, or returns errForm.
func (c Clock) read(text string) (history.Instant, error) {
	if strings.HasPrefix(text, "seq:") || strings.HasPrefix(text, "rv:") {
		return history.ParseInstant(text)
	}
	if !strings.HasPrefix(text, "-") {
		if instant, err := history.ParseInstant(text); err == nil {
			return instant, nil
		}
	}
	if ago, ok := durationOf(text); ok {
		return c.before(text, ago)
	}
	if unixForm.MatchString(text) {
		return c.unix(text)
	}
	at, err := c.wallTime(text)
	if err != nil {
		return history.Instant{}, err
	}
	return history.At(at), nil
}

// before returns the instant that is this long before now.
func (c Clock) before(text string, ago time.Duration) (history.Instant, error) {
	at := c.Now.Add(-ago)
	if ago < 0 || at.Year() < 1970 {
		return history.Instant{}, fmt.Errorf("%w: %q is before 1970", history.ErrInstant, text)
	}
	return history.At(at.Truncate(time.Millisecond)), nil
}

var unixForm = regexp.MustCompile(`^\d{9,10}(\.\d{1,9})?$`)

func (c Clock) unix(text string) (history.Instant, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return history.Instant{}, errForm
	}
	nanoseconds, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return history.Instant{}, errForm
	}
	return history.At(time.Unix(seconds, nanoseconds)), nil
}
