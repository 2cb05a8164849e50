// Package command writes the command line that prints the content of a timeline answer.
package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
)

// A Line is a command line under construction.
type Line struct{ words []string }

// New returns a line. cluster is "" if there is only one.
func New(cluster string, words ...string) *Line {
	l := &Line{words: append([]string{"replay"}, words...)}
	return l.Flag("--cluster", cluster)
}

// Of returns a line for the objects of a filter, as far as commands can name them. Commands can select by resource, by one
// namespace or all, by label, and by one name of one resource in one namespace. whole says that the line expresses every
// bound of the filter on objects.
func Of(cluster, verb string, f *ask.Filter) (l *Line, whole bool) {
	named := f.Name != "" && !strings.Contains(f.Name, "*") && len(f.Resources) == 1 && len(f.Namespaces) == 1
	words := []string{verb}
	switch {
	case named:
		words = append(words, f.Resources[0]+"/"+f.Name)
	case len(f.Resources) > 0:
		words = append(words, strings.Join(f.Resources, ","))
	}
	l = New(cluster, words...)
	if len(f.Namespaces) == 1 {
		l.Flag("-n", f.Namespaces[0])
	} else {
		l.Bare("-A")
	}
	if f.Labels != nil {
		l.Flag("-l", f.Labels.String())
	}
	return l, (named || f.Name == "") && len(f.Namespaces) < 2
}

// OfLife returns a line for the object of a life.
func OfLife(cluster, verb string, life *history.Life) *Line {
	return New(cluster, verb, life.Stream.GroupResource().String()+"/"+life.Name).Flag("-n", life.Namespace)
}

// Flag adds a flag, unless its value is "".
func (l *Line) Flag(name, value string) *Line {
	if value != "" {
		l.words = append(l.words, name, value)
	}
	return l
}

// Bare adds a flag without a value.
func (l *Line) Bare(name string) *Line {
	l.words = append(l.words, name)
	return l
}

// At adds the flag for an instant that was found. Within a pause it writes the time, because a seq would say less.
func (l *Line) At(name string, p history.Point) *Line {
	if p.Until > p.Seq {
		return l.Time(name, p.Time)
	}
	return l.Flag(name, "seq:"+strconv.FormatInt(p.Seq, 10))
}

// Time adds the flag for a time.
func (l *Line) Time(name string, t time.Time) *Line {
	return l.Flag(name, t.UTC().Format(time.RFC3339Nano))
}

// String returns the line with shell quoting.
func (l *Line) String() string {
	quoted := make([]string, len(l.words))
	for i, word := range l.words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

func quote(word string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !harmless(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
