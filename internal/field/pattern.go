package field

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// Pattern selects values by their path, as in --path: dotted, such as spec.containers[*].image, or a JSON pointer, such as
// /spec/containers/*/image. A Pattern also selects all values below a selected value.
type Pattern struct {
	text  string
	steps []wanted
}

// wanted is the condition for one step of a path.
type wanted struct {
	any  bool
	key  string // the member that names the element: key=name
	name string // the key of a member, or the name or the place of an element
	// place is false if the text is quoted: then digits are a name.
	place bool
}

const patternForms = "use a form like spec.replicas, spec.containers[*].image, spec.containers[web].env[name=MODE], " +
	"metadata.labels[app.kubernetes.io/name], or as a JSON pointer, /spec/containers/0/image"

// ParsePattern parses a pattern. The error shows the forms of a pattern.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	var err error
	if strings.HasPrefix(text, "/") {
		p.steps, err = pointerSteps(text)
	} else {
		p.steps, err = dottedSteps(text)
	}
	if err != nil {
		return Pattern{}, fmt.Errorf("path %q: %w: %s", text, err, patternForms)
	}
	return p, nil
}

func pointerSteps(text string) ([]wanted, error) {
	var steps []wanted
	for _, token := range strings.Split(text[1:], "/") {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(token)
		if strings.Contains(rest, "~") {
			return nil, fmt.Errorf("~ must be followed by 0 or 1")
		}
		if token == "*" {
			steps = append(steps, wanted{any: true})
			continue
		}
		steps = append(steps, wanted{name: strings.NewReplacer("~1", "/", "~0", "~").Replace(token), place: true})
	}
	return steps, nil
}

func dottedSteps(text string) ([]wanted, error) {
	// A leading dot, as in jq and kubectl's JSONPath, has no meaning.
	rest := strings.TrimPrefix(text, ".")
	if rest == "" {
		return nil, fmt.Errorf("it is empty")
	}
	var steps []wanted
	for first := true; rest != ""; first = false {
		var next wanted
		var err error
		switch {
		case rest[0] == '[':
			next, rest, err = bracketed(rest)
		case first || rest[0] == '.':
			next, rest, err = dotted(strings.TrimPrefix(rest, "."))
		default:
			err = fmt.Errorf("a dot or bracket is missing before %q", rest)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, next)
	}
	return steps, nil
}

// dotted parses a member's key up to the next dot or bracket. In the key, \. is a dot.
func dotted(rest string) (wanted, string, error) {
	var b strings.Builder
	i := 0
	for ; i < len(rest) && rest[i] != '.' && rest[i] != '['; i++ {
		switch {
		case rest[i] == ']':
			return wanted{}, "", fmt.Errorf("] without [")
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(rest[i])
		}
	}
	if b.Len() == 0 {
		return wanted{}, "", fmt.Errorf("a name is missing between two dots or at its end")
	}
	return wanted{any: b.String() == "*", name: b.String()}, rest[i:], nil
}

// bracketed parses [*], [3], [name], ["name"], ['name'] and [key=name].
func bracketed(rest string) (wanted, string, error) {
	if len(rest) > 1 && (rest[1] == '"' || rest[1] == '\'') {
		return bracketedQuote(rest)
	}
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return wanted{}, "", fmt.Errorf("[ without ]")
	}
	inner, rest := rest[1:end], rest[end+1:]
	key, value, byKey := strings.Cut(inner, "=")
	switch {
	case inner == "" || byKey && (key == "" || value == ""):
		return wanted{}, "", fmt.Errorf("[%s] names nothing", inner)
	case byKey:
		return wanted{key: key, name: strings.Trim(value, `'"`)}, rest, nil
	case strings.ContainsRune(inner, '['):
		return wanted{}, "", fmt.Errorf("[ within [")
	default:
		return wanted{any: inner == "*", name: inner, place: true}, rest, nil
	}
}

func bracketedQuote(rest string) (wanted, string, error) {
	quote := rest[1]
	end := 2
	for end < len(rest) && rest[end] != quote {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	if end+1 >= len(rest) || rest[end+1] != ']' {
		return wanted{}, "", fmt.Errorf("a quote or ] is missing")
	}
	inner := rest[2:end]
	if quote == '"' {
		plain, err := strconv.Unquote(rest[1 : end+1])
		if err != nil {
			return wanted{}, "", fmt.Errorf("%s is not a quoted text", rest[1:end+1])
		}
		inner = plain
	}
	return wanted{name: inner}, rest[end+2:], nil
}

// matches reports whether a step of a path meets the condition. value is the value at the step, nil if it is not known.
func (w wanted) matches(s step, value patch.Doc) bool {
	switch {
	case w.any:
		return true
	case s.place < 0:
		return w.key == "" && s.member == w.name
	case w.key != "":
		return w.key == s.key && w.name == s.name || value != nil && name(value, w.key) == w.name
	default:
		return w.place && w.name == strconv.Itoa(s.place) || s.key != "" && w.name == s.name
	}
}

// Covers reports whether a change is at or below the pattern's path.
func (p Pattern) Covers(c Change) bool {
	return len(p.steps) <= len(c.Path) && p.matchesStart(c.Path[:len(p.steps)], c)
}

// SelectFrom returns the parts of changes that the pattern selects. It keeps a change below the pattern's path unchanged. It
// cuts a change above that path down to the selected values.
func (p Pattern) SelectFrom(all []Change) []Change {
	var found []Change
	for _, c := range all {
		depth := min(len(p.steps), len(c.Path))
		if !p.matchesStart(c.Path[:depth], c) {
			continue
		}
		switch {
		case len(p.steps) > len(c.Path):
			found = append(found, narrow(c, p.steps[depth:])...)
		case !isBookkeeping(c) || p.namesMember():
			found = append(found, c)
		}
	}
	return found
}

// namesMember reports whether the pattern names a member of metadata, status or the like. If not, the user did not request
// bookkeeping.
func (p Pattern) namesMember() bool { return len(p.steps) > 1 && !p.steps[0].any && !p.steps[1].any }

// ParsePatterns parses several patterns.
func ParsePatterns(texts []string) (all []Pattern, err error) {
	for _, text := range texts {
		p, err := ParsePattern(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// SelectAll returns the changes that any of the patterns selects, each once.
func SelectAll(patterns []Pattern, all []Change) (found []Change) {
	for _, p := range patterns {
		for _, c := range p.SelectFrom(all) {
			if !slices.ContainsFunc(found, func(known Change) bool { return known.Op == c.Op && known.Path.String() == c.Path.String() }) {
				found = append(found, c)
			}
		}
	}
	return found
}

// Elements removes list elements from the result of SelectFrom that were added or removed together with their list. So a
// first status does not count as a change of the elements in it.
func Elements(all, selected []Change) []Change {
	return slices.DeleteFunc(selected, func(c Change) bool {
		return slices.ContainsFunc(all, func(whole Change) bool {
			return len(whole.Path) < len(c.Path) && slices.Equal(whole.Path, c.Path[:len(whole.Path)]) &&
				slices.ContainsFunc(c.Path[len(whole.Path):], func(s step) bool { return s.place >= 0 })
		})
	})
}

func (p Pattern) matchesStart(start Path, c Change) bool {
	for i, s := range start {
		var value patch.Doc
		if i == len(c.Path)-1 { // only for the last step are the change's values those of the step
			if value = c.New; value == nil {
				value = c.Old
			}
		}
		if !p.steps[i].matches(s, value) {
			return false
		}
	}
	return true
}

// narrow cuts a change down to its effect on the wanted values below its path.
func narrow(c Change, below []wanted) []Change {
	old, now := selected(c.Path, c.Old, below), selected(c.Path, c.New, below)
	var found []Change
	for _, was := range old {
		at := slices.IndexFunc(now, func(is Change) bool { return is.Path.String() == was.Path.String() })
		switch {
		case at < 0:
			found = append(found, Change{Op: OpRemove, Path: was.Path, Old: was.New})
		case !bytes.Equal(was.New, now[at].New):
			found = append(found, Change{Op: OpReplace, Path: was.Path, Old: was.New, New: now[at].New})
		}
	}
	for _, is := range now {
		if !slices.ContainsFunc(old, func(was Change) bool { return was.Path.String() == is.Path.String() }) {
			found = append(found, is)
		}
	}
	return found
}

// selected returns the wanted values below a value, as additions.
func selected(at Path, value patch.Doc, below []wanted) []Change {
	if value == nil {
		return nil
	}
	if len(below) == 0 {
		return []Change{{Op: OpAdd, Path: at, New: value}}
	}
	inside := members(value)
	key := ""
	if isArray(value) {
		key = identity(inside)
	}
	var found []Change
	for i, m := range inside {
		next := at.index(i)
		switch {
		case isObject(value):
			next = at.key(m.key)
		case key != "":
			next = at.element(i, key, name(m.value, key))
		}
		if below[0].matches(next[len(next)-1], m.value) {
			found = append(found, selected(next, m.value, below[1:])...)
		}
	}
	return found
}
