package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// Wording formats values for people.
type Wording struct {
	// Room is the maximum number of characters of a value, 0 for no limit.
	Room int
}

// RoomOnTerminal keeps a change on one line of most terminals.
const RoomOnTerminal = 60

// Of formats a change for people.
func (w Wording) Of(c field.Change) string {
	at := c.Path.String()
	switch {
	case c.Op == field.OpReorder:
		return at + " in another order"
	case field.Hidden(c.Old) && (c.New == nil || field.Hidden(c.New)) || c.Old == nil && field.Hidden(c.New):
		return map[string]string{field.OpAdd: "+ ", field.OpRemove: "- "}[c.Op] + at + map[string]string{field.OpReplace: " changed"}[c.Op]
	case c.Op == field.OpAdd:
		return "+ " + at + assigned(c.New) + w.value(c.New)
	case c.Op == field.OpRemove && field.IsScalar(c.Old):
		return "- " + at + assigned(c.Old) + w.value(c.Old)
	case c.Op == field.OpRemove:
		return "- " + at
	}
	old, now := w.value(c.Old), w.value(c.New)
	if old == now {
		// Room has cut off the different parts.
		old, now = w.around(c.Old, c.New)
	}
	return at + " " + old + " → " + now
}

func assigned(value patch.Doc) string {
	if field.IsScalar(value) {
		return "="
	}
	return " "
}

// value formats a value on one line. A string has no quotes if it cannot be taken for another value.
func (w Wording) value(value patch.Doc) string {
	if field.Hidden(value) {
		return "(hidden)"
	}
	s := oneLine(value)
	if w.Room == 0 || utf8.RuneCountInString(s) <= w.Room {
		return s
	}
	return string([]rune(s)[:w.Room-1]) + "…"
}

func oneLine(value patch.Doc) string {
	s, isString := patch.Unquote(value)
	if !isString || !needsNoQuotes(string(s)) {
		return render.Line(string(value))
	}
	return string(s)
}

// needsNoQuotes returns false for a text that looks like another value without quotes, or does not stay on one line.
func needsNoQuotes(s string) bool {
	if s == "" || s == "null" || s == "true" || s == "false" || strings.TrimSpace(s) != s || strings.Contains(s, "→") || !utf8.ValidString(s) {
		return false
	}
	if s[0] == '"' || s[0] == '{' || s[0] == '[' || field.IsNumber(strings.NewReplacer("-", "", ".", "").Replace(s)) && s[0] != '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// around returns the parts of two long values around their first difference.
func (w Wording) around(old, now patch.Doc) (before, after string) {
	a, b := []rune(oneLine(old)), []rune(oneLine(now))
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	start := max(0, same-w.Room/3)
	cut := func(s []rune) string {
		end := min(len(s), start+w.Room-2)
		out := string(s[min(start, end):end])
		if start > 0 {
			out = "…" + out
		}
		if end < len(s) {
			out += "…"
		}
		return out
	}
	return cut(a), cut(b)
}

// Writer returns a field manager with the subresource through which it wrote.
func Writer(manager, subresource string) string {
	if subresource == "" {
		return manager
	}
	return manager + "/" + subresource
}
