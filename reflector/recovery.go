package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// recoverTries is how many attempts may fail for a reason that may pass. A server that starts again refuses much, and the
	// history is worth a wait.
	recoverTries = 8
	// recoverStep is how many revisions are looked at before the position moves. If the server ends meanwhile, what it has
	// shown is kept. Before the next step, other streams may have found out which revisions are theirs.
	recoverStep = 500
	// recoverTimeout bounds how long one attempt looks at what it has found to
	// look at. Meanwhile the server's own history, which goes on from there,
	// grows old.
	recoverTimeout = 2 * time.Minute
)

// recoverer brings history to the store that no watch can give, as far as lists at exact revisions show it.
type recoverer struct {
	revisions int // looked at since a watch has worked or a list was completed
	failures  int // attempts since then that failed for no lasting reason

	source   *source
	delivery *delivery
	place    *place
	quiet    *quiet
	retries  *retries
	options  *Options
	log      *slog.Logger
}

// works notes that a watch works or a list was completed.
func (r *recoverer) works() { r.revisions, r.failures = 0, 0 }

// recover brings versions after the position to the store although no watch can give them any more. It reports whether there
// is a later place to watch from.
//
// What an API server can watch begins when it first asked etcd for the resource: at its start, or after a new resource's
// definition. Etcd knows more, and lists at exact resource versions show it (I3). A revision of etcd is one write. So
// revisions that are known to be of other resources can be left out, and if all are known, nothing need be asked. The others
// are looked at (see recovery.settle).
//
// An error calls for a pause, and another try. If the history is gone, or would cost too much, the position stays at the last
// version that was brought.
func (r *recoverer) recover(ctx context.Context, gone error) (bool, error) {
	from, err := strconv.ParseUint(r.place.at.Complete, 10, 64)
	if err != nil || r.options.RecoverRevisions == 0 {
		return false, nil //nolint:nilerr // opaque versions cannot be counted
	}
	c := &recovery{r: r, from: from}
	err = c.run(ctx, gone)
	r.options.Hooks.Recovered(c.told(err == nil))
	switch {
	case err == nil:
		r.revisions += len(c.points)
		r.failures = 0
		r.retries.progress()
		r.log.InfoContext(ctx, "history recovered", "from", from, "to", c.to,
			"revisions", len(c.points), "versions", c.versions, "requests", c.requests.Load())
		return true, nil
	case kindOf(err) == storeFailure:
		return false, err
	case ctx.Err() != nil:
		return false, ctx.Err()
	case c.mayPass(err):
		r.failures++
		if c.versions > 0 {
			// What the next attempt need not bring any more is progress.
			r.failures = 0
			r.retries.progress()
		}
		return false, fmt.Errorf("recover %s after resource version %d: %w", r.source.what, from, err)
	}
	r.log.InfoContext(ctx, "history cannot be recovered", "from", from, "to", c.to, "reached", r.place.at.Newest,
		"requests", c.requests.Load(), "error", err)
	return false, nil
}

// mayPass tells what another attempt may not meet from what it would.
func (c *recovery) mayPass(err error) bool {
	var lasting *unrecoverable
	if errors.As(err, &lasting) || isExpired(err) || c.r.failures >= recoverTries {
		return false
	}
	return deniedCause(err) != "" || !isClientError(err)
}

// unrecoverable is why history is given up that the server may still have.
type unrecoverable struct{ why string }

func (e *unrecoverable) Error() string { return e.why }

// firstWatchable is how an API server says from where on its own history can be
// watched. Without it the history is recovered up to now, which is further.
var firstWatchable = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

func (c *recovery) run(ctx context.Context, gone error) error {
	if err := c.findEnd(ctx, gone); err != nil {
		return err
	}
	release, err := c.findPoints(ctx)
	if err != nil {
		return err
	}
	defer release()
	bounded, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	if err := c.settle(bounded); err != nil {
		return err
	}
	return c.bringEnd()
}

// bringEnd brings the place to where the history was recovered.
func (c *recovery) bringEnd() error {
	return c.r.delivery.recovered(watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(c.to, 10)}}})
}

// findPoints finds which revisions have to be looked at, at most a step of
// them, and enters the gate. It takes to back to where the step ends.
func (c *recovery) findPoints(ctx context.Context) (release func(), err error) {
	if c.points, err = c.unaccounted(ctx); err != nil {
		return nil, err
	}
	limit := c.r.options.RecoverRevisions - c.r.revisions
	if len(c.points) > limit {
		return nil, &unrecoverable{fmt.Sprintf("between %d and %d more than %d revisions may be of this resource", c.from, c.to, limit)}
	}
	if len(c.points) > recoverStep {
		c.to = c.points[recoverStep] - 1
		c.points = c.points[:recoverStep]
	}
	return c.r.options.ListGate(ctx)
}

// findNow sets to to where the server is.
func (c *recovery) findNow(ctx context.Context) error {
	p, err := c.ask(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if c.to, err = strconv.ParseUint(p.rv, 10, 64); err != nil || c.to < c.from {
		return &unrecoverable{fmt.Sprintf("the server is at resource version %q, the record at %d", p.rv, c.from)}
	}
	return nil
}

// findEnd sets up to where to recover.
func (c *recovery) findEnd(ctx context.Context, gone error) error {
	if err := c.findNow(ctx); err != nil {
		return err
	}
	if c.to == c.from {
		return &unrecoverable{"the server is where the record is"}
	}
	if found := firstWatchable.FindStringSubmatch(gone.Error()); found != nil {
		// What does not parse, or is not ahead, is no hint.
		if first, err := strconv.ParseUint(found[1], 10, 64); err == nil && first > c.from {
			c.to = min(c.to, first)
		}
	}
	return nil
}

// unaccounted gives the revisions that may be of this resource. If they are more than may still be looked at, it gives more
// than that, and need not give all.
func (c *recovery) unaccounted(ctx context.Context) ([]uint64, error) {
	limit := c.r.options.RecoverRevisions - c.r.revisions
	if known := c.r.options.Revisions; known != nil {
		return known.Unaccounted(ctx, c.from, c.to, limit, !c.quiet) // A look holds up its watch.
	}
	all := make([]uint64, 0, limit)
	for revision := c.from + 1; revision <= c.to && len(all) <= limit; revision++ {
		all = append(all, revision)
	}
	return all, nil
}

// atResourceVersion is an object with another resource version. An object that
// keeps its bytes knows how to change them.
func atResourceVersion(object runtime.Object, rv string) (runtime.Object, error) {
	if raw, ok := object.(interface {
		AtResourceVersion(rv string) (runtime.Object, error)
	}); ok {
		return raw.AtResourceVersion(rv)
	}
	other := object.DeepCopyObject()
	metadata, err := meta.Accessor(other)
	if err != nil {
		return nil, err
	}
	metadata.SetResourceVersion(rv)
	return other, nil
}
