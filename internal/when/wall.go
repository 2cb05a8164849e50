package when

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

var (
	clockForm = regexp.MustCompile(`^\d{1,2}:\d{2}(:\d{2}(\.\d{1,9})?)?$`)
	dayForm   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
)

// wallTime parses a day, a time of day, or both, in the clock's zone.
func (c Clock) wallTime(text string) (time.Time, error) {
	day, clock := text, ""
	if i := strings.IndexAny(text, " T"); i >= 0 {
		day, clock = text[:i], strings.TrimSpace(text[i+1:])
		if clock == "" {
			return time.Time{}, errForm
		}
	}
	if clock == "" && clockForm.MatchString(day) {
		return c.today(text)
	}
	date, err := c.date(day)
	if err != nil {
		return time.Time{}, err
	}
	if clock == "" {
		return c.begin(text, date)
	}
	return c.moment(text, date, clock)
}

// today parses a time of day. A future time is an error, because the user may mean yesterday.
func (c Clock) today(clock string) (time.Time, error) {
	date, err := c.date("today")
	if err != nil {
		return time.Time{}, err
	}
	at, err := c.moment(clock, date, clock)
	if err == nil && at.After(c.Now) {
		return time.Time{}, fmt.Errorf("%w: %q is in the future: did you mean %q?", history.ErrInstant, clock, "yesterday "+clock)
	}
	return at, err
}

// date returns midnight, in UTC, of the calendar day in the text.
func (c Clock) date(text string) (time.Time, error) {
	year, month, day := c.Now.In(c.Zone).Date()
	today := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	switch {
	case text == "today":
		return today, nil
	case text == "yesterday":
		return today.AddDate(0, 0, -1), nil
	case !dayForm.MatchString(text):
		return time.Time{}, errForm
	}
	date, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q: this day does not exist", history.ErrInstant, text)
	}
	if date.Year() < 1970 || date.Year() > 2261 { // the range of nanoseconds
		return time.Time{}, fmt.Errorf("%w: %q: no record can hold the year %d", history.ErrInstant, text, date.Year())
	}
	return date, nil
}

// begin returns the first moment of a day, also if a change of clocks skips or repeats its midnight.
func (c Clock) begin(text string, date time.Time) (time.Time, error) {
	for wall := date; wall.Before(date.AddDate(0, 0, 1)); wall = wall.Add(15 * time.Minute) {
		if moments := c.moments(wall); len(moments) > 0 {
			return moments[0], nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %q: the zone skips that day", history.ErrInstant, text)
}

// moment returns the only moment at which the clocks of the zone show the time of day on that day.
func (c Clock) moment(text string, date time.Time, clock string) (time.Time, error) {
	if !clockForm.MatchString(clock) {
		return time.Time{}, errForm
	}
	if len(clock) == len("1:23") || clock[1] == ':' {
		clock = "0" + clock
	}
	form := "15:04:05"
	if len(clock) == len("15:04") {
		form = "15:04"
	}
	of, err := time.Parse(form, clock)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q: this time of day does not exist", history.ErrInstant, text)
	}
	wall := date.Add(of.Sub(of.Truncate(24 * time.Hour)))
	switch moments := c.moments(wall); len(moments) {
	case 1:
		return moments[0], nil
	case 0:
		return time.Time{}, fmt.Errorf("%w: %q: the clocks skip that time; did you mean %s?", history.ErrInstant, text, c.afterSkip(wall).Format(time.RFC3339))
	default:
		return time.Time{}, fmt.Errorf("%w: %q: the clocks show that time twice; write %s or %s",
			history.ErrInstant, text, moments[0].Format(time.RFC3339), moments[1].Format(time.RFC3339))
	}
}

// moments returns the moments at which the zone's clocks show the wall time, in order. The wall time is given as if it were
// UTC.
func (c Clock) moments(wall time.Time) (moments []time.Time) {
	for _, near := range []time.Time{wall.Add(-36 * time.Hour), wall.Add(36 * time.Hour)} {
		_, offset := near.In(c.Zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(c.Zone)
		if _, there := at.Zone(); there == offset && (len(moments) == 0 || !moments[0].Equal(at)) {
			moments = append(moments, at)
		}
	}
	return moments
}

// afterSkip returns the moment of the wall time if the clocks had not changed.
func (c Clock) afterSkip(wall time.Time) time.Time {
	_, before := wall.Add(-36 * time.Hour).In(c.Zone).Zone()
	return wall.Add(-time.Duration(before) * time.Second).In(c.Zone)
}
