package delta

// Cause is why a stream was interrupted or listed. The gap in the record has this cause.
type Cause string

// The causes of gaps.
const (
	CauseFirstList       Cause = "first_list"       // nothing was recorded yet
	CauseConfiguration   Cause = "configuration"    // the rules now record more than before
	CauseExpired         Cause = "expired"          // 410: the history from the position on is gone; or objects may have outlived a definition
	CauseForbidden       Cause = "forbidden"        // 403
	CauseUnauthorized    Cause = "unauthorized"     // 401
	CauseNotFound        Cause = "not_found"        // 404: the resource is not served
	CauseUndecodable     Cause = "undecodable"      // the server sent something that cannot be decoded
	CauseHistoryReversed Cause = "history_reversed" // the server's history is not the recorded one
	CauseUnreachable     Cause = "unreachable"      // no answer, or only errors, for a while
	CauseOverflow        Cause = "overflow"         // queue and spool were full, and the watch was held back
	CauseSpoolCorrupt    Cause = "spool_corrupt"    // the spool could not be read
	CauseRelist          Cause = "relist"           // a store was replaced whole, and no cause was given
)

// Given returns the cause of a list's gap. Known is why the recorder expected the list, empty if it expected none.
//
//	the list's cause   known              the gap's cause
//	first_list         any                first_list: nothing was recorded that could be missed
//	any other          history_reversed   history_reversed: from here on, resource versions mean something else
//	expired            any other          known: a 410 says only that the position was too old
//	any other          any other          the list's
func (c Cause) Given(known Cause) Cause {
	switch {
	case known == "" || c == CauseFirstList:
		return c
	case known == CauseHistoryReversed || c == CauseExpired:
		return known
	}
	return c
}

// Divides reports whether an interruption with this cause closes the open gap and opens another. Otherwise a gap keeps
// its first cause, because nothing would have been missed without it. Only a history that went backwards has a gap of
// its own: the gap separates two generations of resource versions.
func (c Cause) Divides(open Cause) bool {
	return c == CauseHistoryReversed && open != CauseHistoryReversed
}

// Ends reports whether a list or a continued watch with this cause closes a gap with cause open. If a server's history
// went backwards, a list or watch that began before that was found does not close the gap: it may still show the old
// history. A first list closes every gap, because nothing was recorded before it.
func (c Cause) Ends(open Cause) bool {
	return open != CauseHistoryReversed || c == CauseHistoryReversed || c == CauseFirstList
}

// Outcome is how a gap has ended.
type Outcome string

// The outcomes of gaps.
const (
	OutcomeResumed  Outcome = "resumed"  // the watch went on, and nothing was missed
	OutcomeRelisted Outcome = "relisted" // a list replaced the missed versions, or a rollback was found before one came
	OutcomeEqual    Outcome = "equal"    // that list held nothing new; versions may have come and gone
)
