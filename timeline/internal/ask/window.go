package ask

import (
	"strconv"
	"time"
	_ "time/tzdata" // The browser sends its zone. An image without zone files would know none.

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/when"
)

// A Window is a period of time. It excludes To.
type Window struct{ From, To time.Time }

// Holds reports whether a time is in the window.
func (w Window) Holds(t time.Time) bool { return !t.Before(w.From) && t.Before(w.To) }

// lastMilli is the beginning of the year 2261. Nanoseconds since 1970 end in 2262, and no record reaches this time.
var lastMilli = time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// Window reads from and to. Both are required.
func (v Values) Window() (Window, error) {
	from, err := v.milli("from")
	if err != nil {
		return Window{}, err
	}
	to, err := v.milli("to")
	switch {
	case err != nil:
		return Window{}, err
	case !from.Before(to):
		return Window{}, Bad("from=%d is not before to=%d: swap them, or make the window longer", from.UnixMilli(), to.UnixMilli())
	}
	return Window{from, to}, nil
}

// WindowOf returns the window between two times in milliseconds since 1970. ok is false if there is no such window.
func WindowOf(from, to int64) (w Window, ok bool) {
	if from < 0 || to > lastMilli || from >= to {
		return w, false
	}
	return Window{From: time.UnixMilli(from).UTC(), To: time.UnixMilli(to).UTC()}, true
}

func (v Values) milli(name string) (time.Time, error) {
	text := v.Text(name)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		return time.Time{}, Bad("%s is missing: give a time in milliseconds since 1970", name)
	case err != nil || n < 0 || n > lastMilli:
		return time.Time{}, Bad("%s=%s: use milliseconds since 1970, up to the year 2261", name, Cut(text))
	}
	return time.UnixMilli(n).UTC(), nil
}

// Instant reads an instant as the command line does, or as milliseconds since 1970. If the parameter is missing, it returns
// the end of the record.
func (v Values) Instant(name string) (history.Instant, error) {
	text := v.Text(name)
	if text == "" {
		return history.Now(), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= lastMilli {
		return history.At(time.UnixMilli(n)), nil
	}
	at, err := history.ParseInstant(text)
	if err != nil {
		return at, Bad("%s=%s is no instant: use a time (2026-03-10T12:00:00Z), milliseconds since 1970, -10m, seq:N, rv:N or now", name, Cut(text))
	}
	return at, nil
}

// Typed reads an instant as people type it (package when). A time without a zone is in the zone of the parameter zone, such
// as Europe/Berlin.
func (v Values) Typed(name string, now time.Time) (history.Instant, error) {
	zone, err := time.LoadLocation(v.Text("zone"))
	if err != nil {
		return history.Instant{}, Bad("zone=%s is unknown to this server: use UTC", Cut(v.Text("zone")))
	}
	at, err := when.Clock{Now: now, Zone: zone}.Parse(v.Text(name))
	if err != nil {
		return at, Bad("%v", err)
	}
	return at, nil
}

// steps are the widths of bars, in seconds. They are round values; each is at most three times as wide as the previous one.
var steps = []int64{
	1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000,
}

// MinBars is the least number of bars of a window, if it has that many seconds.
const MinBars = 60

// Quantised widens a window to whole steps. The window then has at least the requested number of bars, or one for each
// second.
func (w Window) Quantised(bars int64) (Window, time.Duration) {
	step := time.Second
	for _, s := range steps {
		if next := time.Duration(s) * time.Second; int64(w.To.Sub(w.From)/next) >= max(bars, MinBars) {
			step = next
		}
	}
	from, to := w.From.Truncate(step), w.To.Truncate(step)
	if to.Before(w.To) {
		to = to.Add(step)
	}
	return Window{from, to}, step
}

// Clamped returns the part of a window that lies between two times. It may be empty.
func (w Window) Clamped(first, last time.Time) Window {
	if w.From.Before(first) {
		w.From = first
	}
	if w.To.After(last) {
		w.To = last
	}
	if w.To.Before(w.From) {
		w.To = w.From
	}
	return w
}
