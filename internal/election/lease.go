package election

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Lease takes part in client-go's election for a Lease of the cluster.
type Lease struct {
	name     string // with its namespace
	identity string
	elector  *leaderelection.LeaderElector
	lock     *observedLock
	held     chan struct{} // receives when this process has acquired the Lease
}

// NewLease returns a Lease. It writes nothing to the cluster yet. The Lease uses its own connections, so that no list delays a renewal.
// client-go renews it after each fifth of the term. If all renewals fail for two thirds of the term, client-go gives it up.
func NewLease(config *rest.Config, namespace, name, identity string, term time.Duration) (*Lease, error) {
	config = rest.CopyConfig(config)
	config.Timeout = term / 3
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for the Lease %s/%s: %w", namespace, name, err)
	}
	l := &Lease{name: namespace + "/" + name, identity: identity, held: make(chan struct{}, 1)}
	l.lock = &observedLock{Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, LeaseDuration: term, RenewDeadline: term * 2 / 3, RetryPeriod: term / 5, ReleaseOnCancel: true, Name: l.name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				select {
				case l.held <- struct{}{}:
				default:
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("election by the Lease %s: %w", l.name, err)
	}
	return l, nil
}

// String returns the namespace and the name.
func (l *Lease) String() string { return l.name }

// run takes part in the election until ctx ends. Then it releases the Lease.
func (l *Lease) run(ctx context.Context) {
	// The Election logs failures itself.
	ctx = klog.NewContext(ctx, klog.Logger{})
	for ctx.Err() == nil {
		l.elector.Run(ctx)
	}
}

// valid reports whether this process has renewed the Lease within the term.
func (l *Lease) valid() bool { return l.elector.IsLeader() && l.elector.Check(0) == nil }

// other returns the name of another process that held the Lease when it was last read. It returns "" if there is none.
func (l *Lease) other() string {
	if holder := l.elector.GetLeader(); holder != l.identity {
		return holder
	}
	return ""
}

// trouble returns the error of the last request for the Lease.
func (l *Lease) trouble() error {
	err := l.lock.last()
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("lease %s: %w: \"recorder check\" says what to grant", l.name, err)
	}
	if err != nil {
		return fmt.Errorf("lease %s: %w", l.name, err)
	}
	return nil
}

// observedLock keeps the last error, which client-go would only log.
type observedLock struct {
	resourcelock.Interface
	mu  sync.Mutex // protects err
	err error
}

func (o *observedLock) last() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// note keeps an error of a request. It ignores errors that are normal in an election: the Lease does not exist yet, or another process
// was faster.
func (o *observedLock) note(err error) {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// Get implements resourcelock.Interface.
func (o *observedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := o.Interface.Get(ctx)
	o.note(err)
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (o *observedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := o.Interface.Create(ctx, record)
	o.note(err)
	return err
}

// Update implements resourcelock.Interface.
func (o *observedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := o.Interface.Update(ctx, record)
	o.note(err)
	return err
}
