package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/kuberewind/kuberewind/delta"
)

// History is asked whether the server's history is still the one that was reflected. A watch cannot tell. A server that was
// restored to an older state accepts a resource version from its own future, and says nothing until it has caught up.
type History interface {
	// Reversed gives what proves that the server's history is not the one up to resourceVersion that the store was given, ""
	// if nothing does. An implementation may have other streams leave that history, too. If the store has nothing, resourceVersion is "". After an error the stream is not watched.
	Reversed(ctx context.Context, resourceVersion string) (proof string, err error)
	// Truthful returns an error while a list does not show the present state. items are the list's first. A server lists from
	// its cache, which may not know the present state yet. If at is not "", a list at exactly that resource version is better:
	// others were listed there.
	Truthful(ctx context.Context, resourceVersion string, items []any) (at string, err error)
}

// noHistory is the History of a reflector that was given none.
type noHistory struct{}

func (noHistory) Reversed(context.Context, string) (string, error) { return "", nil }

func (noHistory) Truthful(context.Context, string, []any) (string, error) { return "", nil }

// errReversed ends a watch whose history has turned out to be another.
var errReversed = errors.New("the server's history went backwards")

// timeline is the history that the stream is in. It finds out whether the server's is still the same, and has the stream
// leave one that is no more.
type timeline struct {
	history History     // Options.History
	proofs  chan string // of a reversal, from any goroutine
	left    string      // what proves that the place is in a history that is no more; a list must come

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
		t.left = "it had gone backwards before"
	}
	return t
}

// tell has the stream leave its history. Any goroutine may call it.
func (t *timeline) tell(proof string) {
	select {
	case t.proofs <- proof:
	default: // It has been told.
	}
}

// check finds out whether the stream can go on from where it is.
func (t *timeline) check(ctx context.Context) error {
	select {
	case proof := <-t.proofs:
		return t.leave(ctx, proof)
	default:
	}
	at := ""
	if t.left == "" {
		at = t.place.at.Complete
	}
	proof, err := t.history.Reversed(ctx, at)
	if err != nil {
		return fmt.Errorf("look whether %s is what it was: %w", t.what, err)
	}
	if proof == "" {
		return nil
	}
	return t.leave(ctx, proof)
}

// leave has a list come next.
func (t *timeline) leave(ctx context.Context, proof string) error {
	select {
	case <-t.proofs: // of the same
	default:
	}
	newest := t.place.at.Newest
	if t.left != "" || newest == "" {
		return nil
	}
	t.log.WarnContext(ctx, "the server's history went backwards", "proof", proof, "resource_version", newest)
	if !t.place.recorded() {
		t.place.at = cursor{}
		return nil
	}
	t.left = proof
	return t.health.interrupt(delta.CauseHistoryReversed, errors.New(proof))
}

// trust returns an error if the first page of a list does not show what is. Before any other list than the first it was found
// out that the history stands. At is as in History.Truthful.
func (t *timeline) trust(ctx context.Context, p page) (at string, err error) {
	select {
	case proof := <-t.proofs: // The list may have waited for its turn.
		if err := t.leave(ctx, proof); err != nil {
			return "", err
		}
	default:
	}
	if t.left == "" && t.place.recorded() {
		return "", nil
	}
	if at, err = t.history.Truthful(ctx, p.rv, p.items); err != nil {
		return "", fmt.Errorf("the list at resource version %s is not trusted: %w", p.rv, err)
	}
	return at, nil
}
