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

// Options say what is decided, and between whom.
type Options struct {
	// Cluster is the UID of the cluster that is to be recorded.
	Cluster string
	// Identity names this process, for all who ask for the leader.
	Identity string
	// Connect opens a connection to the database, which may be a pooler's.
	Connect Connector
	// ClaimFile keeps the claim of this process for its successor on the same data directory; empty for none.
	ClaimFile string
	// Term is how long after a renewal another process waits before it takes the row.
	Term time.Duration
	// Lease is held by the leader as well; nil for none.
	Lease *Lease
	Log   *slog.Logger
}

// Election is this process's part in one.
type Election struct {
	options Options
	claim   claim
	row     *row

	elected chan struct{} // closed when this process was
	waiting chan string   // who leads, first when it turns out that this process has to wait, then once in a term
	doubted chan struct{} // this process was elected, and another has the row
	lost    chan error    // why this process has to end, once

	stop context.CancelFunc
	all  sync.WaitGroup

	// The fields below belong to the goroutine of the row.
	leads   bool      // was elected, and has not lost
	isOver  bool      // has lost
	patient time.Time // until then the row is left to a leader that lost the database as this process did
	told    time.Time // when waiting was last told
	failing bool      // the database or the Lease, as was last logged
}

// Start joins. The error is that of the first connection; later ones are tried again.
func Start(ctx context.Context, options Options) (*Election, error) {
	if options.Term < MinTerm {
		return nil, fmt.Errorf("a term of %s is below its minimum of %s", options.Term, MinTerm)
	}
	claim, err := openClaim(options.ClaimFile, thisMachine())
	if err != nil {
		options.Log.Warn("no claim to the leadership is kept: a recorder that is started again after a crash waits for --lease-duration", "error", err)
	}
	e := &Election{
		options: options, claim: claim,
		row: &row{
			connect: options.Connect, cluster: options.Cluster, holder: options.Identity, token: claim.token,
			term: options.Term, pace: min(time.Second, options.Term/5),
		},
		elected: make(chan struct{}), waiting: make(chan string, 1), doubted: make(chan struct{}, 1), lost: make(chan error, 1),
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

// Await returns when this process is elected or ctx ends. While this process has to wait, Await calls standby once in a term with the name of the
// leader. An error of standby ends the waiting.
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

// Keep returns nil when ctx ends, and an error when this process has to stop. That is ErrLost if another has the Lease. If another has the row,
// Keep asks doubt whether the record is still this process's, and stops if doubt says no.
func (e *Election) Keep(ctx context.Context, doubt func(context.Context) error) error {
	for {
		select {
		case err := <-e.lost:
			return err
		case <-e.doubted:
			if err := doubt(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Close gives everything up, so that another can be elected at once.
func (e *Election) Close() {
	e.stop()
	e.all.Wait()
	e.claim.close()
}

func (e *Election) run(ctx context.Context) {
	defer e.row.leave()
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

// step looks once. A statement under way when ctx ends has a second to complete: the connection is needed to release the row.
func (e *Election) step(ctx context.Context) {
	asking, cancel := outlive(ctx, leaveTimeout)
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
		e.patient = time.Now().Add(e.options.Term)
	case err != nil || e.isOver:
	case held && !e.leads:
		e.leads = true
		close(e.elected)
	case !held && !e.leads:
		e.wait(asking, other)
	case !held && may:
		select {
		case e.doubted <- struct{}{}:
		default: // It is being looked at.
		}
	}
}

// outlive is a context that ends a while after ctx.
func outlive(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
	return longer, func() { stop(); cancel() }
}

// entitled says whether this process may take the row, or keep it, and else who has the Lease.
func (e *Election) entitled() (may bool, other string) {
	lease := e.options.Lease
	if e.isOver {
		return e.row.held, "" // It is kept until what is queued is written.
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
	return e.leads || !time.Now().Before(e.patient), other
}

// wait notes that this process stands by, and tells who leads if that is known: both once in a term.
func (e *Election) wait(ctx context.Context, leader string) {
	if leader == "" {
		leader = e.row.leader
	}
	if leader == "" || time.Since(e.told) < e.options.Term {
		return
	}
	e.told = time.Now()
	if err := e.row.note(ctx); err != nil {
		e.report(err)
	}
	select {
	case e.waiting <- leader:
	default: // It has not been heard yet.
	}
}

// report logs a failure when it begins and when it ends: leader and standbys go on meanwhile.
func (e *Election) report(err error) {
	if lease := e.options.Lease; err == nil && lease != nil {
		err = lease.trouble()
	}
	switch {
	case err != nil && !e.failing:
		e.options.Log.Warn("the election cannot be held; trying again", "error", err)
	case err == nil && e.failing:
		e.options.Log.Info("the election is held again")
	}
	e.failing = err != nil
}
