package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrLost says that another recorder was elected.
var ErrLost = errors.New("another recorder was elected")

// MinTerm is the shortest term.
const MinTerm = 3 * time.Second

// Options say what is decided, and between whom.
type Options struct {
	// Cluster is the UID of the cluster that is to be recorded.
	Cluster string
	// Identity names this process, to whoever asks who leads.
	Identity string
	// Connect opens a session of the database, for as long as the election lasts.
	Connect func(context.Context) (*pgx.Conn, error)
	// Term is how long a leader may be silent before it is taken for gone.
	Term time.Duration
	// Lease is held by the leader as well; nil for none.
	Lease *Lease
	Log   *slog.Logger
}

// Election is this process's part in one.
type Election struct {
	options Options
	seat    *seat
	pace    time.Duration // between two statements of the seat's session

	elected chan struct{} // closed when this process was
	waiting chan string   // who leads, first when it turns out that this process has to wait, then once in a term
	doubted chan struct{} // this process was elected, and another has the seat
	lost    chan error    // why this process has to end, once

	stop context.CancelFunc
	all  sync.WaitGroup

	// What follows belongs to the goroutine of the seat.
	leads   bool      // was elected, and has not lost
	isOver  bool      // has lost
	patient time.Time // until then the seat is left to a leader that lost the database as this process did
	told    time.Time // when waiting was last told
	failing bool      // the database or the Lease, as was last logged
}

// Start joins. The error is that of the first connection; later ones are tried again.
func Start(ctx context.Context, options Options) (*Election, error) {
	if options.Term < MinTerm {
		return nil, fmt.Errorf("a term of %s is below its minimum of %s", options.Term, MinTerm)
	}
	e := &Election{
		options: options, seat: newSeat(options), pace: min(time.Second, options.Term/5),
		elected: make(chan struct{}), waiting: make(chan string, 1), doubted: make(chan struct{}, 1), lost: make(chan error, 1),
	}
	if err := e.seat.join(ctx); err != nil {
		return nil, err
	}
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if options.Lease != nil {
		e.all.Go(func() { options.Lease.run(ctx) })
	}
	e.all.Go(func() { e.run(ctx) })
	return e, nil
}

// Await returns when this process is elected, when ctx ends, or with the error of standby, which is told who leads when this
// process has to wait, and again once in a term.
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

// Keep returns nil when ctx ends, and an error when this process has to stop: ErrLost where another has the Lease, and that of doubt, which is
// asked, while another has the seat, whether the record is still this one's.
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
}

func (e *Election) run(ctx context.Context) {
	defer e.seat.leave()
	ticker := time.NewTicker(e.pace)
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

// step looks once.
func (e *Election) step(ctx context.Context) {
	may, other := e.entitled()
	held, err := e.seat.sit(ctx, may)
	if ctx.Err() != nil {
		return
	}
	e.report(err)
	switch {
	case err != nil && !e.leads:
		e.patient = time.Now().Add(e.options.Term)
	case err != nil || e.isOver:
	case held && !e.leads:
		e.leads = true
		close(e.elected)
	case !held && !e.leads:
		e.wait(ctx, other)
	case !held && may:
		select {
		case e.doubted <- struct{}{}:
		default: // It is being looked at.
		}
	}
}

// entitled says whether this process may take the seat, or keep it, and else who has the Lease.
func (e *Election) entitled() (may bool, other string) {
	lease := e.options.Lease
	if e.isOver {
		return e.seat.held, "" // It is kept until what is queued is written.
	}
	if lease != nil {
		if other = lease.other(); other != "" && e.leads {
			e.isOver = true
			e.lost <- fmt.Errorf("%w: the Lease %s is held by %s", ErrLost, lease, other)
			return e.seat.held, other
		}
		if !lease.valid() {
			return false, other
		}
	}
	return e.leads || !time.Now().Before(e.patient), other
}

// wait tells that another leads, where that is known.
func (e *Election) wait(ctx context.Context, leader string) {
	if time.Since(e.told) < e.options.Term {
		return
	}
	if leader == "" {
		leader = e.seat.holder(ctx)
	}
	if leader == "" {
		return
	}
	e.told = time.Now()
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
