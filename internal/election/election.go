package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ErrLost says that another recorder was elected.
var ErrLost = errors.New("another recorder was elected")

// MinTerm is the shortest term.
const MinTerm = 3 * time.Second

// Options configure an Election.
type Options struct {
	// Cluster is the UID of the cluster that is to be recorded.
	Cluster string
	// Identity is the name of this process. Other programs read it as the name of the leader.
	Identity string
	// Connect opens a connection to the database, or to a pooler.
	Connect Connector
	// ClaimFile holds the token of this process. A later process on the same data directory reads it. Empty means no file.
	ClaimFile string
	// Term is how long after a renewal another process waits before it takes the row.
	Term time.Duration
	// Lease is a Lease that the leader must hold, too; nil for none.
	Lease *Lease
	Log   *slog.Logger
}

// Election is the part of this process in an election.
type Election struct {
	options Options
	claim   claim
	row     *row

	elected   chan struct{} // closed when this process is elected
	waiting   chan string   // the name of the leader while this process waits: at first, then once in a term
	contested chan struct{} // receives when this process was elected and another has the row
	lost      chan error    // receives, once, why this process must end

	stop context.CancelFunc
	all  sync.WaitGroup

	// The fields below belong to the goroutine of the row.
	leads      bool      // this process was elected
	isOver     bool      // another process has the Lease, so this process must end
	yieldUntil time.Time // until then this process does not take the row, so that a leader that lost the database can renew it first
	notified   time.Time // when waiting was last sent to
	failing    bool      // the last log said that the database or the Lease fails
}

// Start joins the election. It returns an error if the first connection fails; later failures are retried.
func Start(ctx context.Context, options Options) (*Election, error) {
	if options.Term < MinTerm {
		return nil, fmt.Errorf("a term of %s is below its minimum of %s", options.Term, MinTerm)
	}
	claim, err := openClaim(options.ClaimFile, thisMachine())
	if err != nil {
		options.Log.Warn("no claim to the leadership is kept: after a crash, a restarted recorder waits for --lease-duration", "error", err)
	}
	e := &Election{
		options: options, claim: claim,
		row: &row{
			connect: options.Connect, cluster: options.Cluster, holder: options.Identity, token: claim.token,
			term: options.Term, pace: min(time.Second, options.Term/5),
		},
		elected: make(chan struct{}), waiting: make(chan string, 1), contested: make(chan struct{}, 1), lost: make(chan error, 1),
	}
	if err := e.row.join(ctx); err != nil {
		claim.close()
		return nil, err
	}
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if options.Lease != nil {
		e.all.Go(func() { options.Lease.run(ctx) })
	}
	e.all.Go(func() { e.run(ctx) })
	return e, nil
}

// Await returns when this process is elected or ctx ends. While this process waits, Await calls standby once in a term with the name of
// the leader. If standby returns an error, Await returns it.
func (e *Election) Await(ctx context.Context, standby func(ctx context.Context, leader string) error) error {
	for {
		select {
		case <-e.elected:
			return nil
		case leader := <-e.waiting:
			if err := standby(ctx, leader); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Keep returns nil when ctx ends, and an error when this process must stop. If another process has the Lease, that is ErrLost. If another
// process has the row, Keep calls fenced, which checks whether that process has also taken over the record. Keep returns its error.
func (e *Election) Keep(ctx context.Context, fenced func(context.Context) error) error {
	for {
		select {
		case err := <-e.lost:
			return err
		case <-e.contested:
			if err := fenced(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Close releases the row and the Lease, so that another process can be elected at once.
func (e *Election) Close() {
	e.stop()
	e.all.Wait()
	e.claim.close()
}

func (e *Election) run(ctx context.Context) {
	defer e.row.close()
	ticker := time.NewTicker(e.row.pace)
	defer ticker.Stop()
	var held <-chan struct{}
	if e.options.Lease != nil {
		held = e.options.Lease.held
	}
	for {
		e.step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-held:
		case <-ticker.C:
		}
	}
}

// step looks once. If ctx ends during a statement, the statement has a second to complete, because the connection is needed to release
// the row.
func (e *Election) step(ctx context.Context) {
	asking, cancel := outlive(ctx, closeTimeout)
	defer cancel()
	may, other := e.entitled()
	err := e.row.look(asking, may)
	if ctx.Err() != nil {
		return
	}
	held := e.row.held
	e.report(err)
	switch {
	case err != nil && !e.leads:
		e.yieldUntil = time.Now().Add(e.options.Term)
	case err != nil || e.isOver:
	case held && !e.leads:
		e.leads = true
		close(e.elected)
	case !held && !e.leads:
		e.wait(asking, other)
	case !held && may:
		select {
		case e.contested <- struct{}{}:
		default: // Keep has not received the last one yet.
		}
	}
}

// outlive returns a context that ends a while after ctx.
func outlive(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
	return longer, func() { stop(); cancel() }
}

// entitled reports whether this process may take or keep the row. It also returns the name of another holder of the Lease, if there is
// one.
func (e *Election) entitled() (may bool, other string) {
	lease := e.options.Lease
	if e.isOver {
		return e.row.held, "" // This process keeps the row until the queued deltas are written.
	}
	if lease != nil {
		if other = lease.other(); other != "" && e.leads {
			e.isOver = true
			e.lost <- fmt.Errorf("%w: the Lease %s is held by %s", ErrLost, lease, other)
			return e.row.held, other
		}
		if !lease.valid() {
			return false, other
		}
	}
	return e.leads || !time.Now().Before(e.yieldUntil), other
}

// wait notes in the database that this process stands by, and sends the name of the leader to Await. It does both once in a term, and
// only if the leader is known.
func (e *Election) wait(ctx context.Context, leader string) {
	if leader == "" {
		leader = e.row.leader
	}
	if leader == "" || time.Since(e.notified) < e.options.Term {
		return
	}
	e.notified = time.Now()
	if err := e.row.note(ctx); err != nil {
		e.report(err)
	}
	select {
	case e.waiting <- leader:
	default: // Await has not received the last one yet.
	}
}

// report logs when a failure begins and when it ends. The leader and the standbys go on meanwhile.
func (e *Election) report(err error) {
	if lease := e.options.Lease; err == nil && lease != nil {
		err = lease.trouble()
	}
	switch {
	case err != nil && !e.failing:
		e.options.Log.Warn("the election failed; retrying", "error", err)
	case err == nil && e.failing:
		e.options.Log.Info("the election works again")
	}
	e.failing = err != nil
}
