package timeshift

import (
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/patch"
)

// Move returns doc with the times at paths moved. It does not change a value that is not a time, such as null.
func Move(doc patch.Doc, paths []patch.Path, to func(time.Time) time.Time) (patch.Doc, error) {
	return patch.Rewrite(doc, paths, func(_ string, value patch.Doc) (patch.Doc, error) {
		text, ok := patch.Unquote(value)
		if !ok {
			return value, nil
		}
		moved, ok := move(string(text), to)
		if !ok {
			return value, nil
		}
		return patch.Quote([]byte(moved)), nil
	})
}

func move(text string, to func(time.Time) time.Time) (string, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "", false
	}
	moved := to(t).In(t.Location())
	if moved.Year() < 0 || moved.Year() > 9999 {
		return "", false // RFC 3339 cannot write this year
	}
	return moved.Format(layout(text, moved)), true
}

// layout has as many digits of a second as the text, because a MicroTime must have six. If the text has none, layout adds
// digits if the time needs them.
func layout(text string, t time.Time) string {
	_, fraction, _ := strings.Cut(text, ".")
	digits := len(fraction) - len(strings.TrimLeft(fraction, "0123456789"))
	if digits == 0 {
		if t.Nanosecond() == 0 {
			return time.RFC3339
		}
		return time.RFC3339Nano
	}
	return "2006-01-02T15:04:05." + strings.Repeat("0", min(digits, 9)) + "Z07:00"
}
