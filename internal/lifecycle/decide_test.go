package lifecycle

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

// A row is a row of the table in the package's documentation. With its facts, the row applies and no earlier row does.
// Each of spoilt lacks one of these facts, and gives another decision.
type row struct {
	when, then string
	facts      Facts
	want       Decision
	spoilt     []Facts
}

func because(cause delta.Cause) Reason { return Reason{Cause: cause} }

const outlived = "objects may have outlived an earlier definition, and be served under this one"

// followed is a resource that earlier recorders followed up to 10. Its definition began at 20.
var followed = Facts{Served: true, Begins: "20", Position: "10", Recorded: "10", Newest: "25", Vacant: true}

// with changes some facts.
func with(f Facts, change func(*Facts)) Facts {
	change(&f)
	return f
}

func concluded(f *Facts) { f.Run = Concluded }

func spooled(f *Facts) { f.Spooled, f.Vacant = true, false }

var served = []row{
	{
		"a list is due", "list",
		with(followed, func(f *Facts) { f.Due = Reason{delta.CauseNotFound, "why"} }),
		Decision{Do: List, Reason: Reason{delta.CauseNotFound, "why"}}, []Facts{followed},
	},
	{
		"it is new, and objects may have outlived a definition", "list, first_list",
		Facts{Served: true, New: true, Begins: "20", Objects: Possible},
		Decision{Do: List, Reason: because(delta.CauseFirstList)}, nil,
	},
	{
		"objects may have outlived a definition", "list, expired",
		with(followed, func(f *Facts) { f.Objects = Possible }),
		Decision{Do: List, Reason: Reason{delta.CauseExpired, outlived}}, nil,
	},
	{
		"it is new, or its end is on record", "ask, at the start or the end, the later one",
		with(followed, func(f *Facts) { f.Ended = "30" }),
		Decision{Do: Ask, At: "30"}, nil,
	},
	{
		"it is new, and nothing lived at its start", "begin at its definition",
		Facts{Served: true, New: true, Begins: "20", Vacant: true, Objects: None},
		Decision{Do: Begin, At: "20", Reason: because(delta.CauseExpired)}, nil,
	},
	{
		"its end is on record, and it began after that", "begin at its definition",
		Facts{Served: true, Ended: "12", Begins: "20", Vacant: true, Objects: None, Refiltered: true},
		Decision{Do: Begin, At: "20", Reason: because(delta.CauseExpired)},
		[]Facts{
			{Served: true, Ended: "12", Begins: "11", Vacant: true, Objects: None},
			{Served: true, Ended: "12", Vacant: true, Objects: None},
			{Served: true, Ended: "12", Begins: "20", Objects: None},
		},
	},
	{
		"its end is on record", "resume from the end",
		Facts{Served: true, Ended: "12", Position: "10", Vacant: true, Objects: None, Refiltered: true},
		Decision{Do: Resume, At: "12", Reason: because(delta.CauseFirstList)}, nil,
	},
	{
		"it was listed under other filter rules", "list, configuration",
		with(followed, func(f *Facts) { f.Refiltered, f.RolledBack = true, true }),
		Decision{Do: List, Reason: because(delta.CauseConfiguration)},
		[]Facts{{Served: true, Refiltered: true}},
	},
	{
		"this process stopped it within a list", "list, as before",
		Facts{Served: true, Run: Followed, Cut: Reason{delta.CauseExpired, "why"}, Position: "10", RolledBack: true},
		Decision{Do: List, Reason: Reason{delta.CauseExpired, "why"}}, nil,
	},
	{
		"its history went backwards", "list, history_reversed",
		with(followed, func(f *Facts) { f.RolledBack, f.Spooled, f.Cut = true, true, because(delta.CauseExpired) }),
		Decision{Do: List, Reason: because(delta.CauseHistoryReversed)}, nil,
	},
	{
		"the spool ends within a list", "list, as before",
		with(followed, func(f *Facts) { f.Spooled, f.Cut = true, because(delta.CauseExpired) }),
		Decision{Do: List, Reason: because(delta.CauseExpired)}, nil,
	},
	{
		"the record has an unfinished list, and no position", "list, as before",
		Facts{Served: true, Unfinished: delta.CauseExpired},
		Decision{Do: List, Reason: because(delta.CauseExpired)},
		[]Facts{{Served: true, Unfinished: delta.CauseExpired, Position: "10", Recorded: "10"}},
	},
	{
		"an earlier recorder followed it, and a definition began since", "look up earlier definitions",
		followed,
		Decision{Do: LookUp},
		[]Facts{
			with(followed, func(f *Facts) { f.Vacant = false }),
			with(followed, func(f *Facts) { f.Begins = "" }),
			with(followed, func(f *Facts) { f.Run = Followed }),
			with(followed, func(f *Facts) { f.Spooled = true }),
			with(followed, func(f *Facts) { f.Recorded, f.Position = "", "" }),
		},
	},
	{
		"the record of definitions is behind", "wait, for a minute at most",
		with(followed, func(f *Facts) { f.Earlier = Behind }),
		Decision{Do: Wait}, nil,
	},
	{
		"earlier definitions were looked up", "ask, at the start or the newest version, the later one",
		with(followed, func(f *Facts) { f.Earlier = Partial }),
		Decision{Do: Ask, At: "25"}, nil,
	},
	{
		"it was watched to its end, and a definition began since", "ask, at the start",
		with(followed, concluded),
		Decision{Do: Ask, At: "20"},
		[]Facts{
			with(followed, func(f *Facts) { f.Run, f.Position = Concluded, "21" }),
			with(followed, func(f *Facts) { f.Run, f.Vacant = Concluded, false }),
			with(followed, func(f *Facts) { f.Run, f.Begins = Concluded, "" }),
			with(followed, func(f *Facts) { f.Run = Followed }),
		},
	},
	{
		"an earlier recorder left entries on disk, all before the start", "ask, at the start",
		with(followed, spooled),
		Decision{Do: Ask, At: "20"},
		[]Facts{with(followed, func(f *Facts) { f.Spooled, f.Position = true, "25" })},
	},
	{
		"it is registered with a start, and nothing else is known", "begin at that",
		Facts{Served: true, Empty: true, Position: "20", Recorded: "20", Vacant: true},
		Decision{Do: Begin, At: "20", Reason: because(delta.CauseFirstList)},
		[]Facts{{Served: true, Empty: true}, {Served: true, Run: Followed, Empty: true, Position: "20"}},
	},
	{
		"it was watched to its end, and nothing lived at the start", "begin at its definition",
		with(followed, func(f *Facts) { f.Run, f.Objects = Concluded, None }),
		Decision{Do: Begin, At: "20", Reason: because(delta.CauseExpired)}, nil,
	},
	{
		"the record has the end of all earlier definitions, nothing lived", "begin at its definition",
		with(followed, func(f *Facts) { f.Earlier, f.Objects = Whole, None }),
		Decision{Do: Begin, At: "20", Reason: because(delta.CauseExpired)},
		[]Facts{
			with(followed, func(f *Facts) { f.Earlier, f.Objects = Partial, None }),
			with(followed, func(f *Facts) { f.Earlier, f.Objects, f.Position = Whole, None, "21" }),
		},
	},
	{
		"it has a position", "resume from it",
		with(followed, func(f *Facts) { f.Run = Followed }),
		Decision{Do: Resume, At: "10", Reason: because(delta.CauseFirstList)}, nil,
	},
	{
		"none of these", "list, first_list",
		Facts{Served: true, Begins: "20", Vacant: true},
		Decision{Do: List, Reason: because(delta.CauseFirstList)}, nil,
	},
}

// over is a resource that was followed up to 10, and is gone with its definition, which ended at 20.
var over = Facts{Defined: true, Ends: "20", Position: "10", Recorded: "10"}

func watchedToItsEnd(f *Facts) { f.Run, f.Vacant, f.GapOpen = Concluded, true, true }

var gone = []row{
	{
		"its end is on record", "nothing",
		with(over, func(f *Facts) { f.Ended = "20" }),
		Decision{Do: Nothing},
		[]Facts{with(over, func(f *Facts) { f.Ended = "15" })},
	},
	{
		"it was watched to the end of its definition, and nothing is alive", "complete",
		with(over, watchedToItsEnd),
		Decision{Do: Complete, At: "20"},
		[]Facts{
			with(over, func(f *Facts) { watchedToItsEnd(f); f.Vacant = false }),
			with(over, func(f *Facts) { watchedToItsEnd(f); f.Defined = false }),
			with(over, func(f *Facts) { watchedToItsEnd(f); f.Run = Followed }),
		},
	},
	{
		"the end is known, and a list was due", "replace, with the cause of that list",
		with(over, func(f *Facts) { f.Position, f.Recorded = "", "" }),
		Decision{Do: Replace, At: "20", Reason: because(delta.CauseFirstList)}, nil,
	},
	{
		"the end is known, and comes after the position", "replace, not_found",
		with(over, func(f *Facts) { f.GapOpen = true }),
		Decision{Do: Replace, At: "20", From: "10", Reason: because(delta.CauseNotFound)},
		[]Facts{
			with(over, func(f *Facts) { f.GapOpen, f.Ends = true, "" }),
			with(over, func(f *Facts) { f.GapOpen, f.Ends = true, "9" }),
			with(over, func(f *Facts) { f.GapOpen, f.Defined = true, false }),
			with(over, func(f *Facts) { f.GapOpen, f.RolledBack = true, true }),
		},
	},
	{
		"an open gap already says that it cannot be followed", "nothing",
		with(over, func(f *Facts) { f.GapOpen, f.Ends = true, "" }),
		Decision{Do: Nothing}, nil,
	},
	{
		"none of these", "interrupt, not_found",
		with(over, func(f *Facts) { f.Ends = "" }),
		Decision{Do: Interrupt, Reason: Reason{delta.CauseNotFound, "the resource is not served any more"}}, nil,
	},
}

func TestEachRowOfTheTableGivesItsDecision(t *testing.T) {
	for _, rows := range [][]row{served, gone} {
		for _, r := range rows {
			t.Run(r.when, func(t *testing.T) {
				require.Equal(t, r.want, Decide(r.facts))
				for _, f := range r.spoilt {
					d := Decide(f)
					require.False(t, d.Do == r.want.Do && d.Cause == r.want.Cause, "%+v", f)
				}
			})
		}
	}
}

func TestTheDocumentationHasTheRowsInTheirOrder(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var documented, tested []string
	for line := range strings.Lines(string(text)) {
		when, then, isRow := strings.Cut(strings.TrimPrefix(line, "//\t"), "|")
		if isRow && strings.TrimSpace(when) != "if" {
			documented = append(documented, strings.TrimSpace(when)+" | "+strings.TrimSpace(then))
		}
	}
	for _, rows := range [][]row{served, gone} {
		for _, r := range rows {
			tested = append(tested, r.when+" | "+r.then)
		}
	}
	require.Equal(t, documented, tested)
}

// The server is asked alike about a new definition and a new resource.
func TestTheServerIsAskedAboutANewResourceAtTheStartOfItsDefinition(t *testing.T) {
	require.Equal(t, Decision{Do: Ask, At: "20"}, Decide(Facts{Served: true, New: true, Begins: "20"}))
}

func TestEarlierDefinitionsAreWholePartialOrBehind(t *testing.T) {
	// one is a definition that came and went while this process watched.
	one := Definitions{Lives: []Life{{Created: "11", Ended: "14"}}, UpTo: "40", Watched: "10"}
	then := func(change func(*Definitions)) Definitions {
		d := one
		change(&d)
		return d
	}
	for name, test := range map[string]struct {
		record           Definitions
		begins, position string
		want             Earlier
	}{
		"the position is at its end":        {one, "40", "15", Whole},
		"the position is before its end":    {one, "40", "13", Partial},
		"definitions are not recorded":      {Definitions{}, "40", "15", Partial},
		"their record has not come so far":  {one, "41", "15", Behind},
		"some of them may have been missed": {then(func(d *Definitions) { d.Blind = true }), "40", "15", Partial},
		"there is another that lives":       {then(func(d *Definitions) { d.Lives = []Life{{Created: "15"}} }), "40", "15", Behind},
		"a watch from the start shows its end": {then(func(d *Definitions) {
			d.Lives = append([]Life{{Created: "41", Ended: "45"}}, d.Lives...)
			d.UpTo = "50"
		}), "42", "15", Whole},
		"it was there before this process began": {then(func(d *Definitions) { d.Watched = "11" }), "12", "13", Partial},
		"when it ended is not on record":         {then(func(d *Definitions) { d.Lives = []Life{{Created: "11", Pruned: true}} }), "40", "15", Partial},
		"all of them are shown by a watch":       {then(func(d *Definitions) { d.Lives = []Life{{Created: "38", Ended: "45"}} }), "39", "15", Partial},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.record.Before(test.begins, test.position))
		})
	}
}
