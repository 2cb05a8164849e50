package output

import (
	"fmt"
	"strings"
)

// The forms of output that several commands share.
const (
	Text = "text"
	Wide = "wide"
	JSON = "json"
)

// StampForm is RFC 3339 with milliseconds, and the offset of the zone.
const StampForm = "2006-01-02T15:04:05.000Z07:00"

// Mark returns the mark before a time: "?" if clocks of servers contradict it, "~" if it is an estimate, "" if it is
// neither.
func Mark(estimated, contradictory bool) string {
	switch {
	case contradictory:
		return "?"
	case estimated:
		return "~"
	}
	return ""
}

// Indent is the indent of lines that belong to the line above.
const Indent = "    "

// ObjectName returns the name of an object for people: its namespace, if it has one, and its name.
func ObjectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Counted returns a number with an English noun: 1 Secret, 2 Secrets.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ReplacedNote returns a note with an object and the places where U+FFFD replaces text that YAML cannot write; "" if there
// are none. With hint, the note says how to keep the text.
func ReplacedNote(name string, places []string, hint bool) string {
	const most = 3
	if len(places) == 0 {
		return ""
	}
	more := ""
	if len(places) > most {
		more = fmt.Sprintf(" and %d more", len(places)-most)
		places = places[:most]
	}
	note := fmt.Sprintf("%s: U+FFFD replaces bytes that are not Unicode at %s%s", name, strings.Join(places, ", "), more)
	if hint {
		note += "; use snapshot --format json to keep them"
	}
	return note
}
