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

// Lease is one in the cluster, which client-go's election is about.
type Lease struct {
	name     string // with its namespace
	identity string
	elector  *leaderelection.LeaderElector
	lock     *observedLock
	held     chan struct{} // told when it was acquired
}

// NewLease makes nothing yet. Connections are its own, so that no list holds up a renewal. Of the term, two thirds are for renewing: a fifth
// after the last time, and then again and again.
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

// String is the namespace and the name.
func (l *Lease) String() string { return l.name }

// run takes part until ctx ends, then gives the Lease back.
func (l *Lease) run(ctx context.Context) {
	// The Election logs what matters.
	ctx = klog.NewContext(ctx, klog.Logger{})
	for ctx.Err() == nil {
		l.elector.Run(ctx)
	}
}

// valid reports whether this process has renewed the Lease within the term.
func (l *Lease) valid() bool { return l.elector.IsLeader() && l.elector.Check(0) == nil }

// other is who else holds the Lease, as was last seen; empty for nobody.
func (l *Lease) other() string {
	if holder := l.elector.GetLeader(); holder != l.identity {
		return holder
	}
	return ""
}

// trouble is why the Lease could not be read or written the last time.
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

// observedLock remembers the last failure, which client-go would only log.
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

// note leaves out what is part of every election: there is no Lease yet, or another was faster.
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
