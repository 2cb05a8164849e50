package stream

import (
	"fmt"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// overflowAfter is how long the queue must have blocked a stream to be the cause of a list: less is an ordinary wait.
const overflowAfter = time.Second

// because returns the cause of a list and its detail. If the recorder knows a more precise cause than the server's, it
// returns that one (I3).
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

// known returns why the recorder expects a list, and its detail. The cause is empty if it expects none.
func (s *store) known() (cause delta.Cause, why string) {
	if proof := s.stream.rollbackStream.RollbackProof(); proof != "" {
		return delta.CauseHistoryReversed, proof
	}
	if s.run.listing.Load() && s.run.listCause == delta.CauseHistoryReversed {
		return delta.CauseHistoryReversed, "its list starts over"
	}
	if due := s.run.listDetail; due != "" {
		return delta.CauseExpired, due
	}
	if expiry := s.stream.knownExpiryCause(); expiry != "" {
		return expiry, expiryDetails[expiry]
	}
	if held := s.HeldBack(); held >= overflowAfter {
		return delta.CauseOverflow, fmt.Sprintf("queue and spool were full, and the watch was held back for %s", held.Round(time.Second))
	}
	return "", ""
}

// expiryDetails explain the causes in Stream.expiryCause.
var expiryDetails = map[delta.Cause]string{
	delta.CauseConfiguration: "the rules of the previous recorder excluded it",
	delta.CauseSpoolCorrupt:  "a part of the previous recorder's spool could not be read",
}
