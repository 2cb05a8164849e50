package stream

import (
	"fmt"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// overflowAfter is how long a stream must have been held back for that to be the cause: less is an ordinary wait.
const overflowAfter = time.Second

// because is the cause of a list, and its detail, where the recorder may know better than the server why there is a list (I3).
func (s *store) because(cause delta.Cause, detail string) (delta.Cause, string) {
	if cause == delta.CauseHistoryReversed {
		return cause, detail
	}
	known, why := s.known()
	if known == "" || cause.Given(known) != known {
		return cause, detail
	}
	return known, strings.TrimSuffix(why+"; "+detail, "; ")
}

// known is why the recorder expects a list, and what it knows of that. The cause is empty if it expects none.
func (s *store) known() (cause delta.Cause, why string) {
	if proof := s.stream.etcd.RollbackProof(); proof != "" {
		return delta.CauseHistoryReversed, proof
	}
	if s.run.listing.Load() && s.run.listCause == delta.CauseHistoryReversed {
		return delta.CauseHistoryReversed, "its list was begun anew"
	}
	if due := s.run.listDetail; due != "" {
		return delta.CauseExpired, due
	}
	if excuse := s.stream.excuseOf(); excuse != "" {
		return excuse, excuses[excuse]
	}
	if held := s.HeldBack(); held >= overflowAfter {
		return delta.CauseOverflow, fmt.Sprintf("queue and spool were full, and the watch was held back for %s", held.Round(time.Second))
	}
	return "", ""
}

// excuses say what the causes in Stream.excuse mean.
var excuses = map[delta.Cause]string{
	delta.CauseConfiguration: "it was left out by the rules of the recorder before",
	delta.CauseSpoolCorrupt:  "what the recorder before had spooled could not all be read",
}
