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

// Of begins one that is about the objects of a filter, as far as commands can name them: by resource, one namespace or all, and label.
func Of(cluster, verb string, f *ask.Filter) *Line {
	words := []string{verb}
	if len(f.Resources) > 0 {
		words = append(words, strings.Join(f.Resources, ","))
	}
	l := New(cluster, words...)
	if len(f.Namespaces) == 1 {
		l.Flag("-n", f.Namespaces[0])
	} else {
		l.Bare("-A")
	}
	if f.Labels != nil {
		l.Flag("-l", f.Labels.String())
	}
	return l
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
		return l.Flag(name, p.Time.UTC().Format(time.RFC3339Nano))
	}
	return l.Seq(name, p.Seq)
}

// Seq adds the flag for a seq.
func (l *Line) Seq(name string, seq int64) *Line {
	return l.Flag(name, "seq:"+strconv.FormatInt(seq, 10))
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
