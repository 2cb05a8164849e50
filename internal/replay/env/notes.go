package env

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

// maxSimilar is the maximum number of notes of one kind, about different resources, that are printed one by one.
const maxSimilar = 3

// Notes prints notes on standard error, each once. A note about many resources is printed once, with their number.
func (e *Env) Notes(notes []history.Note) {
	similar := map[similarity][]history.Note{}
	for _, n := range notes {
		similar[similarityOf(n)] = append(similar[similarityOf(n)], n)
	}
	for _, n := range notes {
		text := n.Text
		if all := similar[similarityOf(n)]; n.Resource != "" && len(all) > maxSimilar {
			text = joined(all)
		}
		e.Note(text)
	}
}

// A similarity is equal for notes of one kind about different resources.
type similarity struct {
	kind          history.NoteKind
	ofOne         bool // about one resource, not about all
	begins, ended bool
}

func similarityOf(n history.Note) similarity {
	return similarity{n.Kind, n.Resource != "", !n.From.IsZero(), !n.To.IsZero()}
}

// joined returns one sentence for notes of one kind. Its time range covers the time ranges of all notes.
func joined(all []history.Note) string {
	var names []string
	from, to := all[0].From, all[0].To
	for i, n := range all {
		if i < maxSimilar {
			names = append(names, schema.GroupResource{Group: n.Group, Resource: n.Resource}.String())
		}
		if n.From.Before(from) {
			from = n.From
		}
		if n.To.After(to) {
			to = n.To
		}
	}
	who := fmt.Sprintf("%d resources (%s, …)", len(all), strings.Join(names, ", "))
	const why = `; "coverage" says why`
	switch same := similarityOf(all[0]); {
	case same.kind == history.NoteNotYet && same.ended:
		return fmt.Sprintf("%s were not recorded before %s%s", who, stamp(to), why)
	case same.kind == history.NoteNotYet:
		return fmt.Sprintf("%s were not recorded yet%s", who, why)
	case same.kind == history.NoteGap && same.ended:
		return fmt.Sprintf("changes of %s between %s and %s may have been missed%s", who, stamp(from), stamp(to), why)
	case same.kind == history.NoteGap:
		return fmt.Sprintf("changes of %s after %s are not on record%s", who, stamp(from), why)
	case same.kind == history.NoteAfterEnd:
		return fmt.Sprintf("the watches of %s have shown nothing after an earlier resource version: this is their last known state", who)
	}
	return fmt.Sprintf("%s, and the same of %s", all[0].Text, output.Counted(len(all)-1, "more resource"))
}

// stamp formats a time like the notes of a record.
func stamp(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}
