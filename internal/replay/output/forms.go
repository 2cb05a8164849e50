package output

import (
	"fmt"
	"strings"
)

// Forms of output that several commands have.
const (
	Text = "text"
	Wide = "wide"
	JSON = "json"
)

// StampForm is RFC 3339 with milliseconds, and the offset of the zone.
const StampForm = "2006-01-02T15:04:05.000Z07:00"

// Mark stands before a time: "?" if clocks of servers contradict it, "~" if it is an estimate, else "".
func Mark(estimated, contradictory bool) string {
	switch {
	case contradictory:
		return "?"
	case estimated:
		return "~"
	}
	return ""
}

// Indent stands before what belongs to the line above.
const Indent = "    "

// ObjectName is how people name an object: its namespace, if it has one, and its name.
func ObjectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Counted is a number of things, in words of English: 1 Secret, 2 Secrets.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ReplacedNote names an object and the places where U+FFFD stands for what YAML cannot write; "" if there are none. The hint says
// how to keep it.
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
