package when_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/when"
)

func clock(t *testing.T, zone, now string) when.Clock {
	t.Helper()
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339Nano, now)
	require.NoError(t, err)
	return when.Clock{Now: at, Zone: location}
}

func TestTimesParseInTheFormsOfUsers(t *testing.T) {
	c := clock(t, "Europe/Berlin", "2026-11-25T18:50:07.123456789Z") // 19:50 in Berlin
	for text, want := range map[string]string{
		"now":                       "now",
		"seq:12":                    "seq:12",
		"rv:345":                    "rv:345",
		"1h":                        "2026-11-25T17:50:07.123Z",
		"-1h":                       "2026-11-25T17:50:07.123Z",
		"10m ago":                   "2026-11-25T18:40:07.123Z",
		" 10 minutes ago ":          "2026-11-25T18:40:07.123Z",
		"2 hours 30 minutes ago":    "2026-11-25T16:20:07.123Z",
		"-2d12h":                    "2026-11-23T06:50:07.123Z",
		"1.5h":                      "2026-11-25T17:20:07.123Z",
		"1w":                        "2026-11-18T18:50:07.123Z",
		"18:45":                     "2026-11-25T17:45:00Z",
		"7:05:09.5":                 "2026-11-25T06:05:09.5Z",
		"today":                     "2026-11-24T23:00:00Z",
		"today 18:45":               "2026-11-25T17:45:00Z",
		"yesterday":                 "2026-11-23T23:00:00Z",
		"yesterday 14:05":           "2026-11-24T13:05:00Z",
		"2026-11-24":                "2026-11-23T23:00:00Z",
		"2026-11-24 18:45":          "2026-11-24T17:45:00Z",
		"2026-11-24T18:45:01":       "2026-11-24T17:45:01Z",
		"2026-07-01 18:45":          "2026-07-01T16:45:00Z",
		"2026-11-24T18:45:00Z":      "2026-11-24T18:45:00Z",
		"2026-11-24 18:45:00+01:00": "2026-11-24T17:45:00Z",
		"1795587481":                "2026-11-25T06:18:01Z",
		"1795587481.25":             "2026-11-25T06:18:01.25Z",
	} {
		got, err := c.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String(), text)
	}
}

func TestADayBeginsInItsZone(t *testing.T) {
	for _, c := range []struct{ zone, now, text, want string }{
		{"UTC", "2026-11-25T00:00:00Z", "today", "2026-11-25T00:00:00Z"},
		{"Pacific/Auckland", "2026-11-25T12:00:00Z", "today", "2026-11-25T11:00:00Z"},
		{"America/Los_Angeles", "2026-11-25T07:59:00Z", "yesterday", "2026-11-23T08:00:00Z"},
		{"Africa/Cairo", "2026-04-24T12:00:00Z", "2026-04-24", "2026-04-23T22:00:00Z"},    // the clocks skip 00:00 to 01:00
		{"Atlantic/Azores", "2026-10-25T12:00:00Z", "2026-10-25", "2026-10-25T00:00:00Z"}, // the clocks show 00:00 to 01:00 twice
	} {
		got, err := clock(t, c.zone, c.now).Parse(c.text)
		require.NoError(t, err, c.zone)
		require.Equal(t, c.want, got.String(), c.zone)
	}
}

func TestARepeatedOrSkippedTimeIsAnError(t *testing.T) {
	c := clock(t, "Europe/Berlin", "2026-11-25T18:50:07Z")
	for text, want := range map[string]string{
		"2026-10-25 02:30": "write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
		"2026-03-29 02:30": "did you mean 2026-03-29T03:30:00+02:00?",
	} {
		_, err := c.Parse(text)
		require.ErrorIs(t, err, history.ErrInstant, text)
		require.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{
		"2026-10-25 01:59:59": "2026-10-24T23:59:59Z", "2026-10-25 03:00": "2026-10-25T02:00:00Z",
		"2026-03-29 01:59": "2026-03-29T00:59:00Z", "2026-03-29 03:00": "2026-03-29T01:00:00Z",
	} {
		got, err := c.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String(), text)
	}
}

func TestAnErrorSuggestsTheCorrectedForm(t *testing.T) {
	c := clock(t, "Europe/Berlin", "2026-11-25T18:50:07Z")
	for text, want := range map[string]string{
		"10":                   `"10m"`,
		"-10":                  `"10m"`,
		"1845":                 `"18:45"`,
		"18.45":                `"18:45"`,
		"18h45":                `"18:45"`,
		"6:45 pm":              `"18:45"`,
		"6pm":                  `"18:00"`,
		"20:15":                `"yesterday 20:15"`,
		"Yesterday":            `"yesterday"`,
		"yesterday at 14:05":   `"yesterday 14:05"`,
		"14:05 yesterday":      `"yesterday 14:05"`,
		"2026/11/24 18:45":     `"2026-11-24 18:45"`,
		"24.11.2026":           `"2026-11-24"`,
		"2026-11-24t18:45:00z": `"2026-11-24T18:45:00Z"`,
		"Nov 24 18:45":         `"2026-11-24 18:45:00"`,
		"24 Nov 2026":          `"2026-11-24 00:00:00"`,
		"an hour ago":          `"1 hour ago"`,
		"last 2h":              `"2h ago"`,
		"10mago":               `"10m ago"`,
		"-10m ago":             `"10m ago"`,
		"+10m":                 `"10m"`,
		"seq 12":               `"seq:12"`,
		"RV=12":                `"rv:12"`,
		"1795587481123":        `"1795587481"`,
	} {
		_, err := c.Parse(text)
		require.ErrorIs(t, err, history.ErrInstant, text)
		require.ErrorContains(t, err, "did you mean "+want, text)
	}
}

func TestDurationsParseInTheFormsOfUsers(t *testing.T) {
	for text, want := range map[string]time.Duration{"5m": 5 * time.Minute, "1d12h": 36 * time.Hour, "90 seconds": 90 * time.Second, "0s": 0} {
		got, err := when.Duration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "5", "-5m", "5m ago", "nonsense", "\x1b[31m", "1m!", "999999999999h"} {
		_, err := when.Duration(text)
		require.ErrorContains(t, err, "use a duration such as", text)
	}
}

func TestTheErrorOfAnInvalidInstantListsTheForms(t *testing.T) {
	c := clock(t, "Europe/Berlin", "2026-11-25T18:50:07Z")
	for text, want := range map[string]string{
		"":                   "use a time",
		"tomorrow":           "use a time",
		"10 fortnights ago":  "use a time",
		"1 month ago":        "use a time",
		"25:00":              "this time of day does not exist",
		"18:75":              "this time of day does not exist",
		"2026-02-30":         "this day does not exist",
		"2026-13-01 10:00":   "this day does not exist",
		"1812-11-24":         "the year 1812",
		"9999-12-31 10:00":   "the year 9999",
		"999999999999h":      "use a time",
		"1000000h":           "before 1970",
		"seq:0":              "a number from 1",
		"rv:x":               "a number from 1",
		"--":                 "use a time",
		"11/24/2026":         "use a time",
		"\x1b[31m18:45":      "use a time",
		"2026-11-24 ":        "",
		"2026-11-24T":        "use a time",
		"18:45 18:45":        "use a time",
		"yesterday 14:05 Z ": "use a time",
	} {
		_, err := c.Parse(text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorIs(t, err, history.ErrInstant, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestALongTextGetsNoSuggestion(t *testing.T) {
	c := clock(t, "Europe/Berlin", "2026-11-25T18:50:07Z")
	for _, text := range []string{strings.Repeat("1", 1<<20), strings.Repeat("x", 1<<20), strings.Repeat("1h", 1<<19)} {
		_, err := c.Parse(text)
		require.ErrorIs(t, err, history.ErrInstant)
		require.Less(t, len(err.Error()), 300)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"1h", "18:45", "yesterday 14:05", "2026-11-24 18:45", "1795587481.5", "seq:1", "Nov 24", "6pm"} {
		f.Add(text)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	c := when.Clock{Now: time.Date(2026, 11, 25, 18, 50, 0, 0, time.UTC), Zone: berlin}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := c.Parse(text)
		if err != nil {
			require.ErrorIs(t, err, history.ErrInstant)
			return
		}
		again, err := c.Parse(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
