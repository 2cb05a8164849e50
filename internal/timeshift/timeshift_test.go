package timeshift_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/timeshift"
	"github.com/kuberewind/kuberewind/patch"
)

func paths(t *testing.T, texts ...string) (all []patch.Path) {
	t.Helper()
	for _, text := range texts {
		path, err := patch.ParsePath(text)
		require.NoError(t, err)
		all = append(all, path)
	}
	return all
}

func TestATimeKeepsItsFormWhenItMoves(t *testing.T) {
	later := func(t time.Time) time.Time { return t.Add(time.Hour) }
	for text, want := range map[string]string{
		`"2026-03-10T12:00:00Z"`:                 `"2026-03-10T13:00:00Z"`,
		`"2026-03-10T12:00:00.100000Z"`:          `"2026-03-10T13:00:00.100000Z"`,
		`"2026-03-10T12:00:00.000Z"`:             `"2026-03-10T13:00:00.000Z"`,
		`"2026-03-10T23:30:00+02:00"`:            `"2026-03-11T00:30:00+02:00"`,
		`"2026-03-10T12:00:00.5-07:00"`:          `"2026-03-10T13:00:00.5-07:00"`,
		`"2026-03-10T12:00:00.123456789123456Z"`: `"2026-03-10T13:00:00.123456789Z"`,
		`null`:                                   `null`,
		`"soon"`:                                 `"soon"`,
		`""`:                                     `""`,
		`1773144000`:                             `1773144000`,
		`{"a":"2026-03-10"}`:                     `{"a":"2026-03-10"}`,
		`"9999-12-31T23:59:59Z"`:                 `"9999-12-31T23:59:59Z"`,
	} {
		got, err := timeshift.Move(patch.Doc(`{"at":`+text+`,"other":`+text+`}`), paths(t, "/at"), later)
		require.NoError(t, err)
		require.Equal(t, `{"at":`+want+`,"other":`+text+`}`, string(got))
	}
	got, err := timeshift.Move(patch.Doc(`{"at":"2026-03-10T12:00:00Z"}`), paths(t, "/at"), func(t time.Time) time.Time { return t.Add(1500 * time.Millisecond) })
	require.NoError(t, err)
	require.Equal(t, `{"at":"2026-03-10T12:00:01.5Z"}`, string(got))
}
