package history

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// ErrInstant says that a text is not an instant.
var ErrInstant = errors.New("not an instant")

const instantForms = "use a time (2026-03-10T12:00:00Z), a duration before now (-10m, -2d), seq:N, rv:N or now"

type instantKind uint8

const (
	instantNow instantKind = iota
	instantAgo
	instantTime
	instantSeq
	instantRV
)

// An Instant is a moment of the record in the form in which a person names it; Record.Resolve finds it. It includes the
// moment itself. The zero value is now. Instants can be compared.
type Instant struct {
	kind instantKind
	n    int64 // nanoseconds before now, nanoseconds since 1970, or the seq
	rv   string
}

// At returns the instant of a time.
func At(t time.Time) Instant { return Instant{kind: instantTime, n: t.UnixNano()} }

// AtSeq returns the instant at which a delta was recorded.
func AtSeq(n int64) Instant { return Instant{kind: instantSeq, n: n} }

// AtRV returns the instant of a resource version.
func AtRV(rv string) Instant { return Instant{kind: instantRV, rv: rv} }

// Now returns the end of the record.
func Now() Instant { return Instant{} }

// Ago returns the instant that is d before now.
func Ago(d time.Duration) Instant { return Instant{kind: instantAgo, n: int64(d)} }

// IsNow reports whether the instant is now.
func (i Instant) IsNow() bool { return i.kind == instantNow }

// RV returns the resource version that the instant names, or "".
func (i Instant) RV() string { return i.rv }

// String returns the instant as ParseInstant reads it.
func (i Instant) String() string {
	switch i.kind {
	case instantAgo:
		return "-" + time.Duration(i.n).String()
	case instantTime:
		return time.Unix(0, i.n).UTC().Format(time.RFC3339Nano)
	case instantSeq:
		return "seq:" + strconv.FormatInt(i.n, 10)
	case instantRV:
		return "rv:" + i.rv
	default:
		return "now"
	}
}

// timeForms are RFC 3339, also with a space for the T (RFC 3339 allows it), and without seconds.
var timeForms = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"}

// ParseInstant reads an instant: RFC 3339, a duration before now such as -10m or -2d12h, seq:N, rv:N, or now. The error is
// ErrInstant and names these forms.
func ParseInstant(text string) (Instant, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "now":
		return Now(), nil
	case strings.HasPrefix(text, "seq:"):
		n, err := strconv.ParseInt(text[len("seq:"):], 10, 64)
		if err != nil || n < 1 {
			return Instant{}, fmt.Errorf("%w: %q: after seq: a number from 1 is needed", ErrInstant, text)
		}
		return AtSeq(n), nil
	case strings.HasPrefix(text, "rv:"):
		rv := text[len("rv:"):]
		if !delta.Ordered(rv) {
			return Instant{}, fmt.Errorf("%w: %q: after rv: a resource version is needed, a number from 1", ErrInstant, text)
		}
		return AtRV(rv), nil
	case strings.HasPrefix(text, "-"):
		d, err := parseDuration(text[1:])
		if err != nil {
			return Instant{}, fmt.Errorf("%w: %q: after the minus a duration is needed, such as 10m, 1h30m or 2d", ErrInstant, text)
		}
		return Ago(d), nil
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, text); err == nil {
			if t.Year() < 1970 || t.Year() > 2261 { // the range of int64 nanoseconds
				return Instant{}, fmt.Errorf("%w: %q: no record can hold the year %d", ErrInstant, text, t.Year())
			}
			return At(t), nil
		}
	}
	return Instant{}, fmt.Errorf("%w: %q: %s", ErrInstant, text, instantForms)
}

// parseDuration reads a duration as Go does. It may begin with days of 24 hours.
func parseDuration(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		if err == nil && (d < 0 || strings.HasPrefix(text, "+")) {
			err = ErrInstant
		}
		return d, err
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, err
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err == nil && (more < 0 || strings.HasPrefix(rest, "+")) {
		err = ErrInstant
	}
	return d + more, err
}
