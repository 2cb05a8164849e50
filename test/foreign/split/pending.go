package split

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/cohabiting"
)

const (
	patience  = 30 * time.Second
	lookEvery = 50 * time.Millisecond
)

// An expectation is a write that a read has to see.
type expectation interface {
	concerns(path string) bool // whether a read of the path has to see it
	met(ctx context.Context, record *history.Record, end *history.End) (bool, error)
	String() string
}

// pending holds the expectations that the record does not meet yet. It is safe for concurrent use.
type pending struct {
	mu       sync.Mutex // protects expected
	expected []expectation
}

func (o *pending) add(expected []expectation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected = append(o.expected, expected...)
}

// await returns once the record has everything that a read of a path must see now.
func (o *pending) await(ctx context.Context, record *history.Record, path string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		left, err := o.removeMet(ctx, record, path)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s, of %d: %w", left[0], len(left), ctx.Err())
		}
	}
}

// removeMet removes the expectations that the record meets, and returns the others.
func (o *pending) removeMet(ctx context.Context, record *history.Record, path string) (left []expectation, err error) {
	o.mu.Lock()
	expected := slices.DeleteFunc(slices.Clone(o.expected), func(d expectation) bool { return !d.concerns(path) })
	o.mu.Unlock()
	if len(expected) == 0 {
		return nil, nil
	}
	end, err := record.Commits().End(ctx)
	if err != nil {
		return expected, err
	}
	for _, d := range expected {
		met, err := d.met(ctx, record, &end)
		if err != nil {
			return expected, err
		}
		if !met {
			left = append(left, d)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected = slices.DeleteFunc(o.expected, func(d expectation) bool { return slices.Contains(expected, d) && !slices.Contains(left, d) })
	return left, nil
}

// A version is that of an object that was written.
type version struct {
	schema.GroupResource
	rv string
}

func (v *version) concerns(string) bool { return true }

func (v *version) String() string { return fmt.Sprintf("version %s of %s", v.rv, v.GroupResource) }

// met reports whether a stream of the resource has come to the version.
func (v *version) met(_ context.Context, _ *history.Record, end *history.End) (bool, error) {
	groups := cohabiting.With(v.Group, v.Resource)
	for i := range end.Streams {
		s := &end.Streams[i]
		if s.Resource != v.Resource || !slices.Contains(groups, s.Group) || s.LastRV == "" {
			continue
		}
		order, known := delta.Compare(s.LastRV, v.rv)
		if !known {
			return false, fmt.Errorf("the order of resource versions %q and %q is not known", s.LastRV, v.rv)
		}
		if order >= 0 {
			return true, nil
		}
	}
	return false, nil
}

// A life is that of an object that was deleted.
type life struct{ uid string }

func (l *life) concerns(string) bool { return true }

func (l *life) String() string { return "the end of the object with UID " + l.uid }

// met reports whether the life has ended on record.
func (l *life) met(ctx context.Context, record *history.Record, _ *history.End) (bool, error) {
	found := false
	for life, err := range record.Lives(ctx, history.LifeQuery{UID: l.uid}) {
		if err != nil || life.DeletedSeq == 0 {
			return false, err
		}
		found = true
	}
	return found, nil
}
