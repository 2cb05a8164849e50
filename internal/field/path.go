package field

import (
	"slices"
	"strconv"
	"strings"
)

// step is one step of a path: a member of an object, or an element of an array.
type step struct {
	member string // of an object
	place  int    // of an element, -1 for a member
	key    string // member that names the element, "" for none
	name   string // name of the element
}

// Path is the way from an object to a value in it.
type Path []step

func (p Path) key(member string) Path {
	return slices.Concat(p, Path{{member: member, place: -1}})
}

func (p Path) index(place int) Path { return slices.Concat(p, Path{{place: place}}) }

func (p Path) element(place int, key, name string) Path {
	return slices.Concat(p, Path{{place: place, key: key, name: name}})
}

// String returns the path as users write it: spec.containers[web].ports[port=80].name,
// metadata.labels[app.kubernetes.io/name].
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.place < 0:
			b.WriteString(memberStep(s.member))
		case s.key == "":
			b.WriteString(placeStep(s.place))
		default:
			b.WriteString(namedStep(s.key, s.name))
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// Under reports whether the path is at or below a top-level member of the object.
func (p Path) Under(member string) bool { return len(p) > 0 && p[0].place < 0 && p[0].member == member }

// Pointer returns the path as a JSON pointer (RFC 6901).
func (p Path) Pointer() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteByte('/')
		if s.place >= 0 {
			b.WriteString(strconv.Itoa(s.place))
			continue
		}
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(s.member))
	}
	return b.String()
}

// plain reports whether a member can stand after a dot.
func plain(member string) bool {
	return member != "" && member != "*" && !strings.ContainsFunc(member, func(r rune) bool {
		return strings.ContainsRune(`.[]'"\ =/`, r) || r < ' '
	})
}

// inBrackets returns the text between brackets. It quotes the name only if a reader could take it for something else.
func inBrackets(name string) string {
	if name == "" || name == "*" || IsNumber(name) || strings.ContainsFunc(name, func(r rune) bool { return strings.ContainsRune(`[]'"\=`, r) || r < ' ' }) {
		return strconv.Quote(name)
	}
	return name
}

// IsNumber reports whether a text is a number without sign or fraction.
func IsNumber(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
