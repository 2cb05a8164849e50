package stream

import (
	"cmp"
	"context"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/kube"
)

// These exports are for tests with a record. Such tests cannot be in this package.

// Store is the store of a reflector.
type Store = store

// NewStore returns the store of a run that does not list or watch by itself.
func (s *Stream) NewStore(queue *deltafifo.Queue) *Store {
	o := s.FIFOOptions()
	o.Attach = s.decisions.exclusions.attach
	return newStore(s, &Run{fifo: queue.FIFO(o)})
}

// Stream returns the stream of the store.
func (s *store) Stream() *Stream { return s.stream }

// Lives returns the remembered decisions.
func (s *store) Lives() map[types.UID]bool { return s.stream.decisions.lives }

// SetEnded says that the resource has ended.
func (s *Stream) SetEnded(at string) { s.standing.ended = at }

// Next returns the decision for a stream that has not run.
func (s *Stream) Next() lifecycle.Decision { return s.next(nil) }

// Recall does what the first launch does.
func (s *Stream) Recall() { s.recall() }

// Etcd returns the stream's state in the rollback detection.
func (s *Stream) RollbackStream() *rollback.Stream { return s.rollbackStream }

// Since returns when this recorder took over.
func (s *Stream) Since() time.Time { return s.dating.since }

// CatchesUp reports whether the next delta counts as missed.
func (s *Stream) CatchesUp() bool { return s.dating.live.catchingUp }

// CatchesUpTo returns the end of the pause.
func (s *Stream) CatchesUpTo() time.Time { return s.dating.live.to }

// FakeEtcd has the versions of a few objects, in order.
type FakeEtcd struct {
	Now      int
	Versions []*kube.Object
	Asked    atomic.Int64
}

// Lister returns the same lister for each namespace.
func (e *FakeEtcd) Lister(string) cache.ListerWithContext { return e }

// List implements cache.Lister.
func (e *FakeEtcd) List(options metav1.ListOptions) (runtime.Object, error) {
	return e.ListWithContext(context.Background(), options)
}

// ListWithContext answers lists by name at an exact revision, and returns the revision of etcd.
func (e *FakeEtcd) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	e.Asked.Add(1)
	if order, ok := delta.Compare(options.ResourceVersion, strconv.Itoa(e.Now)); ok && order > 0 {
		ahead := apierrors.NewTimeoutError("Too large resource version", 0)
		ahead.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, ahead
	}
	at := cmp.Or(options.ResourceVersion, strconv.Itoa(e.Now))
	list := &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: at}}
	for _, o := range e.Versions {
		if order, ok := delta.Compare(o.ResourceVersion, at); ok && order <= 0 && options.FieldSelector == "metadata.name="+o.Name {
			list.Items = []*kube.Object{o}
		}
	}
	return list, nil
}
