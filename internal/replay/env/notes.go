package env

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

// mostAlike is the maximum number of notes of one kind, about different resources, that are printed one by one.
const mostAlike = 3

// Notes prints notes on standard error, each once. A note about many resources is printed once, with their number.
func (e *Env) Notes(notes []history.Note) {
	alike := map[likeness][]history.Note{}
	for _, n := range notes {
		alike[likenessOf(n)] = append(alike[likenessOf(n)], n)
	}
	for _, n := range notes {
		text := n.Text
		if all := alike[likenessOf(n)]; n.Resource != "" && len(all) > mostAlike {
			text = inOne(all)
		}
		e.Note(text)
	}
}

// A likeness is equal for notes of one kind about different resources.
type likeness struct {
	kind          history.NoteKind
	ofOne         bool // about one resource, not about all
	begins, ended bool
}

func likenessOf(n history.Note) likeness {
	return likeness{n.Kind, n.Resource != "", !n.From.IsZero(), !n.To.IsZero()}
}

// inOne returns one sentence for notes of one kind. Its time range covers the time ranges of all notes.
func inOne(all []history.Note) string {
	var names []string
	from, to := all[0].From, all[0].To
	for i, n := range all {
		if i < mostAlike {
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
	switch like := likenessOf(all[0]); {
	case like.kind == history.NoteNotYet && like.ended:
		return fmt.Sprintf("%s were not recorded before %s%s", who, stamp(to), why)
	case like.kind == history.NoteNotYet:
		return fmt.Sprintf("%s were not recorded yet%s", who, why)
	case like.kind == history.NoteGap && like.ended:
		return fmt.Sprintf("changes of %s between %s and %s may have been missed%s", who, stamp(from), stamp(to), why)
	case like.kind == history.NoteGap:
		return fmt.Sprintf("changes of %s after %s are not on record%s", who, stamp(from), why)
	case like.kind == history.NoteAfterEnd:
		return fmt.Sprintf("the watches of %s have shown nothing after an earlier resource version: this is their last known state", who)
	}
	return fmt.Sprintf("%s, and the same of %s", all[0].Text, output.Counted(len(all)-1, "more resource"))
}

// stamp formats a time like the notes of a record.
func stamp(t time.Time) string {
	return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
}
