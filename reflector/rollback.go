package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kuberewind/kuberewind/delta"
)

// History answers whether the server's history is still the one that the reflector has followed. A watch cannot show
// that. A server whose etcd was put back to an older state accepts a resource version from its own future, and sends nothing
// until it has caught up.
type History interface {
	// CheckRollback returns a proof that the server's history is not the one up to resourceVersion that the store was given,
	// "" if there is none. An implementation may also roll back other streams of that history. If the store has
	// nothing, or a list after a rollback is due, resourceVersion is "". After an error the reflector does not watch.
	CheckRollback(ctx context.Context, resourceVersion string) (proof string, err error)
	// CheckList returns an error while a list does not show the present state. items are the list's first. A server
	// lists from its cache, which may not know the present state yet. If at is not "", a list at exactly that resource
	// version is better: other streams were listed there.
	CheckList(ctx context.Context, resourceVersion string, items []any) (at string, err error)
}

// noHistory is the History of a reflector without Options.History.
type noHistory struct{}

func (noHistory) CheckRollback(context.Context, string) (string, error) { return "", nil }

func (noHistory) CheckList(context.Context, string, []any) (string, error) { return "", nil }

// errRolledBack ends a watch, a list or a recovery whose history was found to be another one.
var errRolledBack = errors.New("the server's history went backwards")

// timeline is the history of the stream. It checks whether the server's history is still the same. If not, it rolls
// the stream back: the store learns it, and a list must come.
type timeline struct {
	history       History     // Options.History
	proofs        chan string // proofs of a rollback, from any goroutine
	rollbackProof string      // the proof that the place is in a history that no longer exists; a list must come

	place  *place
	health *health
	what   string // Options.TypeDescription
	log    *slog.Logger
}

func newTimeline(options *Options, place *place, health *health, log *slog.Logger) *timeline {
	t := &timeline{
		history: options.History, proofs: make(chan string, 1),
		place: place, health: health, what: options.TypeDescription, log: log,
	}
	if options.ListCause == delta.CauseHistoryReversed {
		t.rollbackProof = "it had gone backwards before"
	}
	return t
}

// notify passes a proof to the stream. Any goroutine may call it.
func (t *timeline) notify(proof string) {
	select {
	case t.proofs <- proof:
	default: // A proof is pending already.
	}
}

// proofPending reports whether check will roll the stream back. Any goroutine may call it.
func (t *timeline) proofPending() bool { return len(t.proofs) > 0 }

// check reports an error, or rolls the stream back, if the stream cannot go on from its place.
func (t *timeline) check(ctx context.Context) error {
	select {
	case proof := <-t.proofs:
		return t.rollBack(ctx, proof)
	default:
	}
	at := ""
	if t.rollbackProof == "" {
		at = t.place.at.Complete
	}
	proof, err := t.history.CheckRollback(ctx, at)
	if err != nil {
		return fmt.Errorf("check the history of %s: %w", t.what, err)
	}
	if proof == "" {
		return nil
	}
	return t.rollBack(ctx, proof)
}

// rollBack makes a list due, because the place is in a history that no longer exists.
func (t *timeline) rollBack(ctx context.Context, proof string) error {
	select {
	case <-t.proofs: // another proof of the same rollback
	default:
	}
	newest := t.place.at.Newest
	if t.rollbackProof != "" || newest == "" {
		return nil
	}
	t.log.WarnContext(ctx, "the server's history went backwards", "proof", proof, "resource_version", newest)
	if !t.place.recorded() {
		t.place.at = cursor{}
		return nil
	}
	t.rollbackProof = proof
	return t.health.interrupt(delta.CauseHistoryReversed, errors.New(proof))
}

// trust returns an error if the first page of a list does not show the present state. It asks History only for a first
// list and after a rollback: before any other list, check has confirmed the history. For at, see History.CheckList.
func (t *timeline) trust(ctx context.Context, p page) (at string, err error) {
	select {
	case proof := <-t.proofs: // The list may have waited at the gate.
		if err := t.rollBack(ctx, proof); err != nil {
			return "", err
		}
	default:
	}
	if t.rollbackProof == "" && t.place.recorded() {
		return "", nil
	}
	if at, err = t.history.CheckList(ctx, p.rv, p.items); err != nil {
		return "", fmt.Errorf("the list at resource version %s is not trusted: %w", p.rv, err)
	}
	return at, nil
}
