package replay

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// bookkeeping is what the server changes with every write, and says nothing about what was done.
var bookkeeping = []string{"metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "status.observedGeneration"}

// isBookkeeping reports whether a change is at or below one of those.
func isBookkeeping(c change) bool {
	if len(c.path) < 2 || c.path[0].place >= 0 || c.path[1].place >= 0 {
		return false
	}
	return slices.Contains(bookkeeping, c.path[0].member+"."+c.path[1].member)
}

// visible leaves bookkeeping out.
func visible(all []change) []change {
	return slices.DeleteFunc(slices.Clone(all), isBookkeeping)
}

// expanded takes apart what was added or removed whole where that reads better: maps of scalars, such as labels.
func expanded(all []change) []change {
	var out []change
	for _, c := range all {
		out = append(out, c.parts()...)
	}
	return out
}

func (c change) parts() []change {
	value := c.new
	if c.op == opRemove {
		value = c.old
	}
	if c.op != opAdd && c.op != opRemove || len(c.path) == 0 || c.path[len(c.path)-1].place >= 0 || !isObject(value) {
		return []change{c}
	}
	inside := members(value)
	if len(inside) == 0 || slices.ContainsFunc(inside, func(m member) bool { return isArray(m.value) || isObject(m.value) && len(m.value) > len("{}") }) {
		return []change{c}
	}
	var out []change
	for _, m := range inside {
		part := change{op: c.op, path: c.path.key(m.key)}
		if c.op == opAdd {
			part.new = m.value
		} else {
			part.old = m.value
		}
		out = append(out, part)
	}
	return out
}

// wording says how values are written for people.
type wording struct {
	// room is how many characters a value may take, 0 for any number.
	room int
}

// roomOnTerminal leaves a change on one line of most terminals.
const roomOnTerminal = 60

// words is a change as a person reads it.
func (w wording) words(c change) string {
	at := c.path.String()
	switch {
	case c.op == opReorder:
		return at + " in another order"
	case hidden(c.old) && (c.new == nil || hidden(c.new)) || c.old == nil && hidden(c.new):
		return map[string]string{opAdd: "+ ", opRemove: "- "}[c.op] + at + map[string]string{opReplace: " changed"}[c.op]
	case c.op == opAdd:
		return "+ " + at + assigned(c.new) + w.value(c.new)
	case c.op == opRemove && isScalar(c.old):
		return "- " + at + assigned(c.old) + w.value(c.old)
	case c.op == opRemove:
		return "- " + at
	}
	old, now := w.value(c.old), w.value(c.new)
	if old == now {
		// What is different was cut off.
		old, now = w.around(c.old, c.new)
	}
	return at + " " + old + " → " + now
}

func assigned(value patch.Doc) string {
	if isScalar(value) {
		return "="
	}
	return " "
}

// value is a value on one line: strings without quotes where that can be read as nothing else.
func (w wording) value(value patch.Doc) string {
	if hidden(value) {
		return "(hidden)"
	}
	s := oneLine(value)
	if w.room == 0 || utf8.RuneCountInString(s) <= w.room {
		return s
	}
	return string([]rune(s)[:w.room-1]) + "…"
}

func oneLine(value patch.Doc) string {
	s, isString := patch.Unquote(value)
	if !isString || !needsNoQuotes(string(s)) {
		return render.Line(string(value))
	}
	return string(s)
}

// needsNoQuotes is false for what without quotes looks like something else, or would not stay on its line.
func needsNoQuotes(s string) bool {
	if s == "" || s == "null" || s == "true" || s == "false" || strings.TrimSpace(s) != s || strings.Contains(s, "→") || !utf8.ValidString(s) {
		return false
	}
	if s[0] == '"' || s[0] == '{' || s[0] == '[' || isNumber(strings.NewReplacer("-", "", ".", "").Replace(s)) && s[0] != '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// around gives the parts of two long values in which they begin to differ.
func (w wording) around(old, now patch.Doc) (before, after string) {
	a, b := []rune(oneLine(old)), []rune(oneLine(now))
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	start := max(0, same-w.room/3)
	cut := func(s []rune) string {
		end := min(len(s), start+w.room-2)
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

// summary says of a delta what its changes do not.
func summary(v *history.Version) string {
	first := v.Seq == v.ObjectID
	switch {
	case v.Type == cache.Added && v.Source == "watch":
		return "created"
	case v.Type == cache.Added:
		return "found by a list after a gap: created meanwhile"
	case v.Type == cache.Deleted && v.Source == "inferred":
		return "deleted: a list no longer held it"
	case v.Type == cache.Deleted:
		return "deleted"
	case v.Type != cache.Sync:
		return ""
	case v.Source == "list" && first:
		return "was there when recording began"
	case v.Source == "resync":
		return "unchanged: stored again"
	case v.Source == "schema":
		return "nobody changed it: the server serves it in another form"
	case first:
		return "found by a list after a gap"
	}
	return "found changed by a list after a gap"
}

// writer is a field manager, with the subresource it wrote through.
func writer(manager, subresource string) string {
	if subresource == "" {
		return manager
	}
	return manager + "/" + subresource
}

// unified is the difference between two versions as YAML. It is "" if there is none.
func unified(title string, before, after patch.Doc, beforeName, afterName string, all bool) string {
	return udiff.Unified(label("a/", title, beforeName, before), label("b/", title, afterName, after), yamlOf(before, all), yamlOf(after, all))
}

func label(prefix, title, version string, doc patch.Doc) string {
	if doc == nil {
		return "/dev/null"
	}
	return prefix + render.Line(title) + "\t" + version
}

// yamlOf is a version as YAML, without bookkeeping unless all is asked for.
func yamlOf(doc patch.Doc, all bool) string {
	if doc == nil {
		return ""
	}
	if !all {
		doc = withoutBookkeeping(doc)
	}
	text, err := render.YAML(doc)
	if err != nil || render.Replaced(doc) != nil {
		return string(render.JSON(doc)) + "\n" // YAML would hide a difference.
	}
	return string(text)
}

func withoutBookkeeping(doc patch.Doc) patch.Doc {
	var steps bytes.Buffer
	for _, name := range bookkeeping {
		pointer := "/" + strings.ReplaceAll(name, ".", "/")
		if _, ok := patch.Get(doc, pointer); ok {
			fmt.Fprintf(&steps, `%s{"op":"remove","path":%q}`, map[bool]string{true: "", false: ","}[steps.Len() == 0], pointer)
		}
	}
	less, err := patch.Apply(doc, []byte("["+steps.String()+"]"))
	if err != nil {
		return doc
	}
	return less
}
