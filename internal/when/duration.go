package when

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	oneUnit  = regexp.MustCompile(`^\s*(\d+(?:\.\d+)?)\s*([a-z]+)`)
	unitList = map[string]time.Duration{
		"ms": time.Millisecond,
		"s":  time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
		"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
		"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
		"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
		"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
	}
)

// Duration parses a duration in the forms that users type: 5m, 2 hours, 1d12h.
func Duration(text string) (time.Duration, error) {
	d, ok := durationOf(text)
	if !ok || strings.HasPrefix(text, "-") || strings.HasSuffix(text, " ago") {
		return 0, errors.New("use a duration such as 30s, 5m, 2h or 1d12h")
	}
	return d, nil
}

// durationOf parses 10m, -10m, 2d12h, 10m ago, 2 hours 30 minutes ago. It rejects more than 292 years, which do not fit into
// a Duration.
func durationOf(text string) (time.Duration, bool) {
	rest, minus := strings.CutPrefix(text, "-")
	rest, ago := strings.CutSuffix(rest, " ago")
	if minus && ago || rest == "" {
		return 0, false
	}
	var total float64
	for rest != "" {
		parts := oneUnit.FindStringSubmatch(rest)
		if parts == nil {
			return 0, false
		}
		unit, known := unitList[parts[2]]
		n, err := strconv.ParseFloat(parts[1], 64)
		if !known || err != nil {
			return 0, false
		}
		total += n * float64(unit)
		rest = rest[len(parts[0]):]
	}
	return time.Duration(total), total < math.MaxInt64
}
