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
	// recoverTries is how many attempts may fail for a temporary reason. A server that restarts refuses many requests,
	// and the history is worth a wait.
	recoverTries = 8
	// recoverStep is how many revisions the reflector looks at before the position moves. If the server ends meanwhile,
	// the versions so far are kept. Before the next step, other streams may have found out which revisions are theirs.
	recoverStep = 500
	// recoverTimeout bounds how long one attempt looks at its revisions. Meanwhile the server's own history, which
	// begins at the end of the recovery, grows old.
	recoverTimeout = 2 * time.Minute
)

// recoverer gives history to the store that no watch can give, as far as lists at exact revisions show it.
type recoverer struct {
	revisions int // looked at since a watch has worked or a list was completed
	failures  int // attempts since then that failed for a temporary reason

	source   *source
	delivery *delivery
	place    *place
	quiet    *quiet
	retries  *retries
	timeline *timeline
	options  *Options
	log      *slog.Logger
}

// works notes that a watch works or a list was completed.
func (r *recoverer) works() { r.revisions, r.failures = 0, 0 }

// recover delivers versions after the position that no watch can give any more. It reports whether there is a later
// place to watch from.
//
// An API server can serve a watch only from the time when it first read the resource from etcd: its start, or the
// creation of the resource's definition. Etcd knows more, and lists at exact resource versions show it (I3). A revision
// of etcd is one write. So the recoverer skips revisions that are known to belong to other resources. If that is true
// of all, it needs no list at an exact revision. It looks at the others (see recovery.deliverChanges).
//
// After an error, the caller pauses and tries again. If the history is gone, or would cost too much, the position stays
// at the last delivered version.
func (r *recoverer) recover(ctx context.Context, gone error) (bool, error) {
	from, err := strconv.ParseUint(r.place.at.Complete, 10, 64)
	if err != nil || r.options.RecoverRevisions == 0 {
		return false, nil //nolint:nilerr // opaque versions cannot be counted
	}
	c := &recovery{r: r, from: from}
	err = c.run(ctx, gone)
	r.options.Hooks.Recovered(c.report(err == nil))
	switch {
	case err == nil:
		r.revisions += len(c.points)
		r.failures = 0
		r.retries.progress()
		r.log.InfoContext(ctx, "history recovered", "from", from, "to", c.to,
			"revisions", len(c.points), "versions", c.versions, "requests", c.requests.Load())
		return true, nil
	case kindOf(err) == storeFailure, errors.Is(err, errRolledBack):
		return false, err
	case ctx.Err() != nil:
		return false, ctx.Err()
	case c.mayRetry(err):
		r.failures++
		if c.versions > 0 {
			// The next attempt need not deliver these versions again: this is progress.
			r.failures = 0
			r.retries.progress()
		}
		return false, fmt.Errorf("recover %s after resource version %d: %w", r.source.what, from, err)
	}
	r.log.InfoContext(ctx, "history cannot be recovered", "from", from, "to", c.to, "reached", r.place.at.Newest,
		"requests", c.requests.Load(), "error", err)
	return false, nil
}

// mayRetry reports whether another attempt may succeed.
func (c *recovery) mayRetry(err error) bool {
	var lasting *unrecoverable
	if errors.As(err, &lasting) || isExpired(err) || c.r.failures >= recoverTries {
		return false
	}
	return deniedCause(err) != "" || !isClientError(err)
}

// unrecoverable is the reason why the reflector does not recover history that the server may still have.
type unrecoverable struct{ why string }

func (e *unrecoverable) Error() string { return e.why }

// firstWatchable matches the message in which an API server names the first version that it can watch. Without the
// message, the history is recovered up to now, which is further.
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
	if err := c.deliverChanges(bounded); err != nil {
		return err
	}
	return c.moveToEnd()
}

// moveToEnd moves the place to the end of the recovered history.
func (c *recovery) moveToEnd() error {
	return c.r.delivery.recovered(watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(c.to, 10)}}})
}

// findPoints finds the revisions to look at, at most one step, and enters the gate. It moves c.to back to the end of
// the step.
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

// findNow sets c.to: the server's present resource version.
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

// findEnd sets the end of the recovery.
func (c *recovery) findEnd(ctx context.Context, gone error) error {
	if err := c.findNow(ctx); err != nil {
		return err
	}
	if c.to == c.from {
		return &unrecoverable{"the server is where the record is"}
	}
	if found := firstWatchable.FindStringSubmatch(gone.Error()); found != nil {
		// A version that does not parse, or that is not ahead, is ignored.
		if first, err := strconv.ParseUint(found[1], 10, 64); err == nil && first > c.from {
			c.to = min(c.to, first)
		}
	}
	return nil
}

// unaccounted returns the revisions that may belong to this resource. If there are more than may still be looked at, it
// returns more than that number, and need not return all.
func (c *recovery) unaccounted(ctx context.Context) ([]uint64, error) {
	limit := c.r.options.RecoverRevisions - c.r.revisions
	if known := c.r.options.Revisions; known != nil {
		return known.Unaccounted(ctx, c.from, c.to, limit, !c.quiet) // A look blocks its watch.
	}
	all := make([]uint64, 0, limit)
	for revision := c.from + 1; revision <= c.to && len(all) <= limit; revision++ {
		all = append(all, revision)
	}
	return all, nil
}

// atResourceVersion returns an object with another resource version. An object that keeps its bytes has a method for
// that.
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
