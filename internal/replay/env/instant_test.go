package env

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimesInATextHaveTheZoneOfTheAnswer(t *testing.T) {
	zone := time.FixedZone("", int((2*time.Hour+30*time.Minute)/time.Second))
	for text, want := range map[string]string{
		"the record begins at 2026-03-10T23:00:00.125Z, after 2026-03-10T12:00:00Z": "the record begins at 2026-03-11T01:30:00.125+02:30, after 2026-03-10T14:30:00+02:30",
		`--at "2026-03-10T23:00:00Z" is no instant`:                                 `--at "2026-03-10T23:00:00Z" is no instant`,
		"2026-13-10T23:00:00Z and 2026-03-10T23:00:00+01:00":                        "2026-13-10T23:00:00Z and 2026-03-10T23:00:00+01:00",
		"(~2026-03-10T12:00:00Z)":                                                   "(~2026-03-10T14:30:00+02:30)",
		"nothing":                                                                   "nothing",
	} {
		require.Equal(t, want, inZone(text, zone))
		require.Equal(t, text, inZone(text, time.UTC))
	}
}
