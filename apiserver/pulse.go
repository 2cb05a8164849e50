package apiserver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

const (
	// lagWithin is how far a record may be behind its cluster without a word. A recorder says each second that it records, also while
	// nothing happens.
	lagWithin = 10 * time.Second
	// quietWithin is how long a recorder that sees its cluster may commit nothing: servers send each stream a bookmark every minute.
	quietWithin = 2 * time.Minute
)

// outdated says why the cluster may have changed since the last commit, "" if the record follows it. The pulse was read some time ago.
func outdated(p history.Pulse, ago time.Duration) string {
	committed := cmp.Or(p.CommittedAt, p.ObservedAt)
	stamp := committed.Truncate(time.Millisecond).Format(time.RFC3339Nano)
	now := p.Now.Add(ago)
	switch lag := committed.Sub(p.ObservedAt); {
	case p.RenewedAt.IsZero() || now.Sub(p.RenewedAt) > lagWithin:
		return fmt.Sprintf("no recorder records this cluster: the last commit was at %s, and the cluster may have changed since", stamp)
	case lag > lagWithin:
		return fmt.Sprintf("the recorder is %s behind the cluster: the last commit was at %s", lag.Round(time.Second), stamp)
	case now.Sub(committed) > quietWithin:
		return fmt.Sprintf("the recorder %s runs and has committed nothing for %s, perhaps because it cannot reach the cluster: the last commit was at %s",
			p.Recorder, now.Sub(committed).Round(time.Second), stamp)
	}
	return ""
}

// unsure says why a namespace that lives by the record may be gone by now, "" if the record is at most so far behind. A recorder that can
// reach its database and not its cluster is found out after quietWithin.
func unsure(p history.Pulse, most time.Duration) string {
	committed := cmp.Or(p.CommittedAt, p.ObservedAt)
	seen := p.ObservedAt
	if p.RenewedAt.After(seen) {
		seen = p.RenewedAt
	}
	ends, lag, quiet := p.Now.Sub(seen), committed.Sub(p.ObservedAt), p.Now.Sub(committed)
	if ends <= most && lag <= most && quiet <= max(most, quietWithin) {
		return ""
	}
	return fmt.Sprintf("the record ends %s ago, and the namespace may be another by now", max(p.Now.Sub(p.ObservedAt), lag).Round(time.Second))
}
