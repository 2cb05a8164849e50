package reflector

import (
	"context"
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/delta"
)

// History is asked whether the server's history is still the one that was reflected. A watch cannot tell. A server that was
// restored to an older state accepts a resource version from its own future, and says nothing until it has caught up.
type History interface {
	// Reversed gives what proves that the server's history is not the one up to resourceVersion that the store was given, ""
	// if nothing does. If the store has nothing, resourceVersion is "". After an error the stream is not watched.
	Reversed(ctx context.Context, resourceVersion string) (proof string, err error)
	// Truthful returns an error while a list does not show the present state. items are the list's first. A server lists from
	// its cache, which may not know the present state yet.
	Truthful(ctx context.Context, resourceVersion string, items []any) error
}

// noHistory is the History of a reflector that was given none.
type noHistory struct{}

func (noHistory) Reversed(context.Context, string) (string, error) { return "", nil }
func (noHistory) Truthful(context.Context, string, []any) error    { return nil }

// errReversed ends a watch whose history has turned out to be another.
var errReversed = errors.New("the server's history went backwards")

// Reverse makes the stream leave its history: its watch ends, the store is told, and a list follows once History finds one
// truthful. Any goroutine may call it, at any time.
func (r *Reflector) Reverse(proof string) {
	select {
	case r.reversals <- proof:
	default: // It has been told.
	}
}

// inHistory finds out whether the stream can go on from where it is.
func (r *Reflector) inHistory(ctx context.Context) error {
	select {
	case proof := <-r.reversals:
		return r.reverse(ctx, proof)
	default:
	}
	at := ""
	if r.reversed == "" {
		at = r.at.Complete
	}
	proof, err := r.options.History.Reversed(ctx, at)
	if err != nil {
		return fmt.Errorf("look whether %s is what it was: %w", r.TypeDescription(), err)
	}
	if proof == "" {
		return nil
	}
	return r.reverse(ctx, proof)
}

// reverse has a list come next.
func (r *Reflector) reverse(ctx context.Context, proof string) error {
	select {
	case <-r.reversals: // of the same
	default:
	}
	if r.reversed != "" || r.at.Newest == "" {
		return nil
	}
	r.log.WarnContext(ctx, "the server's history went backwards", "proof", proof, "resource_version", r.at.Newest)
	if !r.recorded() {
		r.at = cursor{}
		return nil
	}
	r.reversed = proof
	return r.interrupt(delta.CauseHistoryReversed, errors.New(proof))
}

// trust returns an error if the first page of a list does not show what is. Before
// any other list than the first it was found out that the history stands.
func (r *Reflector) trust(ctx context.Context, p page) error {
	select {
	case proof := <-r.reversals: // The list may have waited for its turn.
		if err := r.reverse(ctx, proof); err != nil {
			return err
		}
	default:
	}
	if r.reversed == "" && r.recorded() {
		return nil
	}
	if err := r.options.History.Truthful(ctx, p.rv, p.items); err != nil {
		return fmt.Errorf("the list at resource version %s is not trusted: %w", p.rv, err)
	}
	return nil
}
