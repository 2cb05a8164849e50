package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/paging"
)

// listTries is how many times the reflector starts a list before a pause. The last try requests everything in one page,
// which cannot lose its snapshot.
const listTries = 3

// errSnapshotLost says that a list must start over: its snapshot is gone.
var errSnapshotLost = errors.New("the list's snapshot was lost between pages")

// relist is a list that is due.
type relist struct {
	cause  delta.Cause
	detail string
	// tentative: if the list cannot be begun, watch again instead.
	tentative bool
}

// lister gives consistent lists to the store.
type lister struct {
	pending *relist // a list must come before the next watch

	source   *source
	out      outlet
	place    *place
	timeline *timeline
	health   *health
	options  *Options
	log      *slog.Logger
}

// due reports whether a list must come before the next watch.
func (l *lister) due() bool {
	return l.place.at.Newest == "" || l.pending != nil || l.timeline.rollbackProof != ""
}

// list gives one consistent list to the store. It returns the watch that was read in the meantime, nil if none was.
func (l *lister) list(ctx context.Context) (*openWatch, error) {
	// The wait is outside the gate: other streams can list meanwhile, and the list is still new when the store gets it.
	if err := l.options.BeforeList(ctx); err != nil {
		return nil, fmt.Errorf("list %s: %w", l.source.what, err)
	}
	release, err := l.options.ListGate(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: waiting for a turn: %w", l.source.what, err)
	}
	defer release()
	var ahead *openWatch
	for try := range listTries {
		ahead, err = l.attempt(ctx, l.limit(try))
		if !errors.Is(err, errSnapshotLost) {
			break
		}
		l.log.InfoContext(ctx, "the list starts over", "error", err)
	}
	if err != nil {
		return nil, l.failed(err)
	}
	return ahead, nil
}

// limit returns how many objects the first page requests; 0 means all.
func (l *lister) limit(try int) int64 {
	if try == listTries-1 {
		return 0
	}
	return l.source.pages.limit()
}

// failed withdraws a tentative list. A rejected request is no evidence about a place in the stream.
func (l *lister) failed(err error) error {
	if l.pending != nil && l.pending.tentative {
		l.pending = nil
	}
	err = fmt.Errorf("list %s: %w", l.source.what, err)
	if kindOf(err) == poisonFailure {
		return &failure{kind: transientFailure, err: err}
	}
	return err
}

// attempt reads one list from its first page to its last.
func (l *lister) attempt(ctx context.Context, limit int64) (_ *openWatch, err error) {
	a := &listAttempt{l: l}
	defer func() {
		if err != nil {
			a.abort()
		}
	}()
	var pages paging.Guard
	// Resource version "" requests the newest state, not the state of a cache.
	for next := ""; ; {
		p, err := l.source.fetch(ctx, metav1.ListOptions{Limit: limit, Continue: next})
		if err != nil {
			return nil, a.pageFailed(err)
		}
		if !a.begun {
			p, err = l.trusted(ctx, p, limit)
		}
		if err != nil {
			return nil, err
		}
		if p.next != "" {
			err = pages.Next(p.next)
		}
		if err != nil {
			return nil, err
		}
		if err := a.accept(ctx, p); err != nil {
			return nil, err
		}
		if p.next == "" {
			return a.finish()
		}
		next, limit = p.next, l.limit(0)
	}
}

// trusted returns the first page of the list to record, if p shows the present state. If other streams of the same etcd
// were listed at another resource version, it returns the page at that version. Otherwise, the revisions in between could
// not be attributed to any stream. If the server does not give that page, it returns p.
func (l *lister) trusted(ctx context.Context, p page, limit int64) (page, error) {
	at, err := l.timeline.trust(ctx, p)
	if err != nil || at == "" || at == p.rv {
		return p, err
	}
	exact, err := l.source.fetch(ctx, metav1.ListOptions{
		Limit: limit, ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err != nil || exact.rv != at {
		l.log.DebugContext(ctx, "cannot list at the resource version of other streams", "resource_version", at, "error", err)
		return p, nil
	}
	return exact, nil
}

// listAttempt is one list on its way to the store.
type listAttempt struct {
	l     *lister
	rv    string // the list's, "" before the first page
	begun bool   // the store knows the list
	items []any  // for a store that needs all items at once
	late  []error
	ahead *lookahead // reads the watch while further pages come
}

// pageFailed distinguishes an expired snapshot from other failures.
func (a *listAttempt) pageFailed(err error) error {
	if a.begun && isExpired(err) {
		return fmt.Errorf("%w: %w", errSnapshotLost, err)
	}
	return err
}

// accept gives one page to the store.
func (a *listAttempt) accept(ctx context.Context, p page) error {
	if a.begun && p.rv != a.rv {
		return fmt.Errorf("%w: first page at resource version %s, a further one at %q", errSnapshotLost, a.rv, p.rv)
	}
	if !a.begun {
		if err := a.begin(ctx, p); err != nil {
			return err
		}
	} else {
		a.late = append(a.late, p.undecodable...)
	}
	if err := a.l.out.unreadable(p.undecodable); err != nil {
		return err
	}
	if a.ahead == nil && p.next != "" {
		a.ahead = lookAhead(ctx, a.l.source, a.rv)
	}
	if a.l.out.paged == nil {
		a.items = append(a.items, p.items...)
		return nil
	}
	return storeFailed("replace page", a.rv, a.l.out.paged.ReplacePage(p.items, a.rv))
}

// begin announces the list to the store (I3).
func (a *listAttempt) begin(ctx context.Context, p page) error {
	if !delta.Resumable(p.rv) {
		return &failure{kind: unusableFailure, err: fmt.Errorf(
			"the server's list has resource version %q, from which no watch can go on: this resource cannot be recorded", p.rv)}
	}
	a.rv = p.rv
	cause, detail := a.cause(p)
	from := ""
	if a.l.place.recorded() {
		from = a.l.place.at.Complete
	}
	if err := a.l.out.beginReplace(cause, detail, from); err != nil {
		return err
	}
	a.begun = true
	if a.l.timeline.rollbackProof == "" && a.l.timeline.proofPending() {
		return errRolledBack // History has not been asked whether this list shows the present state.
	}
	if a.l.pending != nil {
		// I3: the store records items of the list before the list ends. History from before the list would come too
		// late.
		a.l.pending.tentative = false
	}
	a.l.options.Hooks.Relist(cause)
	level := slog.LevelInfo
	if cause == delta.CauseFirstList {
		level = slog.LevelDebug // a recorder's first start has one for each stream
	}
	a.l.log.Log(ctx, level, "listing", "cause", cause, "detail", detail, "from", from, "resource_version", a.rv)
	return nil
}

// cause returns the cause of the list, and the details. The first of these is the cause: a rollback, a list that is older
// than the record, an interruption, why the list is due. An expired history is a consequence of an interruption.
func (a *listAttempt) cause(p page) (cause delta.Cause, detail string) {
	l, details := a.l, []string{}
	cause = l.options.ListCause
	switch {
	case !l.place.recorded():
	case l.timeline.rollbackProof != "":
		cause = delta.CauseHistoryReversed
		details = append(details, l.timeline.rollbackProof)
	case delta.Precedes(p.rv, l.place.at.Newest):
		cause = delta.CauseHistoryReversed
		details = append(details, fmt.Sprintf("the list is at resource version %s, the record at %s", p.rv, l.place.at.Newest))
	case l.health.interrupted != "":
		cause = l.health.interrupted
	case l.pending != nil:
		cause = l.pending.cause
	}
	if l.pending != nil {
		details = append(details, l.pending.detail)
	}
	if len(p.undecodable) > 0 {
		details = append(details, undecodableItems(p.undecodable))
	}
	return cause, strings.Join(details, "; ")
}

// finish closes the list in the store and, I1, only then makes its resource version the position.
func (a *listAttempt) finish() (*openWatch, error) {
	l := a.l
	if len(a.late) > 0 {
		// These items came after the announcement of the list, so they need an announcement of their own (I3).
		if err := l.out.interrupted(delta.CauseUndecodable, undecodableItems(a.late)); err != nil {
			return nil, err
		}
	}
	if err := a.end(); err != nil {
		return nil, err
	}
	l.pending, l.timeline.rollbackProof = nil, ""
	l.health.listed()
	l.place.listed(a.rv)
	if a.ahead == nil {
		return nil, nil
	}
	return a.ahead.handOver(), nil
}

func (a *listAttempt) end() error {
	if a.l.out.paged == nil {
		return storeFailed("replace", a.rv, a.l.out.store.Replace(a.items, a.rv))
	}
	return storeFailed("end replace", a.rv, a.l.out.paged.EndReplace(a.rv))
}

// abort aborts a list that is not complete.
func (a *listAttempt) abort() {
	if a.ahead != nil {
		a.ahead.discard()
	}
	if a.begun {
		a.l.out.abortReplace()
	}
}

func undecodableItems(errs []error) string {
	const shown = 5
	text := fmt.Sprintf("%d items of the list could not be decoded", len(errs))
	for _, err := range errs[:min(shown, len(errs))] {
		text += ": " + err.Error()
	}
	return text
}
