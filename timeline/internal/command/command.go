// Package command writes the command line that gives what an answer of the timeline gives.
package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
)

// A Line is a command line on its way.
type Line struct{ words []string }

// New begins one. cluster is "" if there is only one.
func New(cluster string, words ...string) *Line {
	l := &Line{words: append([]string{"replay"}, words...)}
	return l.Flag("--cluster", cluster)
}

// Of begins one that is about the objects of a filter, as far as commands can name them. They can by resource, one namespace or all, and label, and by one name
// of one resource in one namespace. whole says that no other part of the filter bounds the objects.
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

// OfLife begins one that is about the object of a life.
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

// Bare adds a flag that has no value.
func (l *Line) Bare(name string) *Line {
	l.words = append(l.words, name)
	return l
}

// At adds the flag for an instant that was found. Within a pause, a seq says less than the time.
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

// String gives the line as a shell reads it.
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
