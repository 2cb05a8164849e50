package lifecycle

import (
	"cmp"

	"github.com/kuberewind/kuberewind/delta"
)

// Facts are the known facts about a resource and its stream. A resource version is empty if it is not known, or if
// there is none.
type Facts struct {
	// Served says that the API server serves the resource. Otherwise the resource is gone.
	Served bool
	// Begins is the version at which the present definition began. No object was alive then, unless objects outlived
	// the previous definition.
	Begins string
	// Ends is the version at which the definition and all its objects were gone.
	Ends string
	// Defined says that the resource that is gone had a definition.
	Defined bool

	// New says that the record does not know the resource.
	New bool
	// Empty says that the stream is registered, and that neither record nor spool has anything else of it.
	Empty bool
	// Vacant says that no object of the stream is alive. It is false while that is not known.
	Vacant bool
	// Ended is the version of an end that is on record. No object was alive then.
	Ended string
	// Position is how far the stream has come: by the run of this process, the spool or the record. Recorded is the
	// position of the record, and Newest the newest version there.
	Position, Recorded, Newest string
	// GapOpen says that an open gap already records that the stream cannot be followed.
	GapOpen bool

	Run     Run
	Spooled bool // an earlier recorder left entries of the stream in the spool

	Due        Reason      // why a list must come before anything else
	Cut        Reason      // why a list was begun or due that has not ended: in this process, or in the spool
	Unfinished delta.Cause // why the record has a list that has not ended
	Refiltered bool        // the last list was under other filter rules
	RolledBack bool        // the stream's history went backwards, and no list has come since

	Earlier Earlier // what the record says about earlier definitions
	Objects Objects // what the server says about objects that outlived them
}

// Run is the state of the stream's run in this process.
type Run int

// The states of a run.
const (
	NoRun     Run = iota
	Followed      // it follows the resource, or was stopped while it did
	Concluded     // it watched the resource until that was not served any more
)

// Reason is why a stream is listed. It is zero if no list is due.
type Reason struct {
	Cause  delta.Cause
	Detail string
}

// Objects is the answer to whether any object lived at a resource version.
type Objects int

// The answers.
const (
	NotAsked Objects = iota
	None
	Possible // there are some, or the server does not know any more
)

// Action is what the recorder does.
type Action int

// These actions are for a served resource. Ask and LookUp find out another fact. The caller adds it, and decides again.
const (
	List   Action = iota + 1 // list it, for the Reason
	Resume                   // watch from the position At
	Begin                    // watch from At, where no object was alive
	Ask                      // ask the server whether any object was alive at At: sets Objects
	LookUp                   // look for earlier definitions on record: sets Earlier
	Wait                     // wait for the record of definitions
)

// These actions are for a resource that is gone.
const (
	Nothing   Action = iota + 10 // the record says so already
	Complete                     // end the stream at At: nothing is missing
	Replace                      // end the living objects by an empty list at At, after a gap with the Cause
	Interrupt                    // open a gap that stays open
)

// Decision is an action with its arguments.
type Decision struct {
	Do Action
	At string
	// From is the position of the stream before a Replace.
	From string
	// Reason is why the stream is listed. For Resume and Begin it is the reason of a list that may turn out to be
	// necessary.
	Reason
}

// outlivedDetail is why a stream is listed if objects may have outlived a definition.
const outlivedDetail = "objects may have outlived an earlier definition, and be served under this one"

// Decide returns what to do. The rows of the table in the package's documentation are its cases, in the same order.
func Decide(f Facts) Decision {
	if f.Served {
		return begin(f)
	}
	return end(f)
}

// begin decides where the stream of a served resource begins.
func begin(f Facts) Decision {
	switch ended := f.New || f.Ended != ""; {
	case f.Due != Reason{}:
		return Decision{Do: List, Reason: f.Due}
	case f.Objects == Possible && f.New:
		return list(delta.CauseFirstList)
	case f.Objects == Possible:
		// I3: the record already has versions of the resource, so the list is not a first one and needs a gap.
		return Decision{Do: List, Reason: Reason{delta.CauseExpired, outlivedDetail}}
	case ended && f.Objects == NotAsked:
		return Decision{Do: Ask, At: delta.Later(f.Begins, f.Ended)}
	case ended && f.Vacant && beginsFrom(f, f.Ended):
		return Decision{Do: Begin, At: f.Begins, Reason: Reason{Cause: delta.CauseExpired}}
	case f.Ended != "":
		return Decision{Do: Resume, At: f.Ended, Reason: Reason{Cause: delta.CauseFirstList}}
	case f.Refiltered && (cmp.Or(f.Position, f.Recorded) != "" || f.Unfinished != ""):
		return list(delta.CauseConfiguration)
	case f.Run != NoRun && f.Cut != Reason{}:
		return Decision{Do: List, Reason: f.Cut}
	case f.RolledBack:
		// Once the resource versions have caught up, nothing would show that they went back.
		return list(delta.CauseHistoryReversed)
	case f.Cut != Reason{}:
		return Decision{Do: List, Reason: f.Cut}
	case f.Position == "" && f.Unfinished != "":
		return list(f.Unfinished)
	}
	return goOn(f)
}

// goOn decides for a stream without a due list.
func goOn(f Facts) Decision {
	before := f.Begins != "" && f.Run == NoRun && !f.Spooled && f.Recorded != "" && f.Vacant
	concluded := f.Run == Concluded && f.Vacant && f.Position != "" && beginsFrom(f, f.Position)
	spooled := f.Run == NoRun && f.Spooled && delta.Precedes(f.Position, f.Begins)
	switch {
	case before && f.Earlier == NotLookedUp:
		return Decision{Do: LookUp}
	case before && f.Earlier == Behind:
		return Decision{Do: Wait}
	case before && f.Objects == NotAsked:
		return Decision{Do: Ask, At: delta.Later(f.Begins, f.Newest)}
	case (concluded || spooled) && f.Objects == NotAsked:
		return Decision{Do: Ask, At: f.Begins}
	case f.Run == NoRun && f.Empty && f.Position != "":
		return Decision{Do: Begin, At: f.Position, Reason: Reason{Cause: delta.CauseFirstList}}
	case concluded, before && f.Earlier == Whole && beginsFrom(f, f.Position):
		return Decision{Do: Begin, At: f.Begins, Reason: Reason{Cause: delta.CauseExpired}}
	case f.Position != "":
		return Decision{Do: Resume, At: f.Position, Reason: Reason{Cause: delta.CauseFirstList}}
	}
	return list(delta.CauseFirstList)
}

// end decides how the stream of a resource that is gone ends.
func end(f Facts) Decision {
	next := resumed(f)
	from, known := next.At, f.Defined && f.Ends != "" && next.Cause != delta.CauseHistoryReversed
	switch {
	case f.Ended != "" && (f.Ends == "" || f.Ends == f.Ended):
		return Decision{Do: Nothing}
	case f.Defined && f.Run == Concluded && f.Vacant:
		return Decision{Do: Complete, At: f.Ends}
	case known && from == "": // A list was due, or under way.
		return Decision{Do: Replace, At: f.Ends, Reason: next.Reason}
	case known && delta.Precedes(from, f.Ends):
		return Decision{Do: Replace, At: f.Ends, From: from, Reason: Reason{Cause: delta.CauseNotFound}}
	case f.GapOpen:
		return Decision{Do: Nothing}
	}
	return Decision{Do: Interrupt, Reason: Reason{delta.CauseNotFound, "the resource is not served any more"}}
}

// resumed returns where the stream would go on if the resource were served again, without a new definition.
func resumed(f Facts) Decision {
	f.Served, f.New, f.Begins, f.Objects = true, false, "", None
	return begin(f)
}

// beginsFrom reports whether the present definition begins at a version or later.
func beginsFrom(f Facts, version string) bool {
	return f.Begins != "" && !delta.Precedes(f.Begins, version)
}

func list(cause delta.Cause) Decision { return Decision{Do: List, Reason: Reason{Cause: cause}} }
