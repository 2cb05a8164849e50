package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/internal/paging"
)

// remember notes since when some objects are there, by UID.
func (a *album[T]) remember(created map[types.UID]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, e := range a.entries {
		if e.since == "" && a.begun(e.value) && a.missed[name] == nil {
			e.since = created[e.uid]
		}
	}
}

// recall looks for where the given objects begun after a resource version that was
// reached by an earlier run. It takes at most a few seconds; what etcd has
// forgotten stays unknown.
func (a *album[T]) recall(ctx context.Context, since string, created map[types.UID]string, missing map[types.UID]bool) {
	if a.replay(ctx, since, created, missing); len(missing) == 0 || ctx.Err() != nil {
		return
	}
	// A server that was restarted has forgotten what etcd has not.
	if err := a.dropThoseAt(ctx, since, missing); err != nil {
		a.log.Debug("when definitions began is not known", "since", since, "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, e := range a.entries {
		if missing[e.uid] && e.since == "" && a.begun(e.value) && a.missed[name] == nil {
			e.since = since
		}
	}
}

// dropThoseAt leaves the ones that had not begun yet at a resource version.
func (a *album[T]) dropThoseAt(ctx context.Context, version string, missing map[types.UID]bool) error {
	options := metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: albumPage}
	var pages paging.Guard
	for {
		page, err := a.lister.Page(ctx, options)
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			if _, e := a.extract(o); e == nil || a.begun(e.value) {
				delete(missing, o.UID)
			}
		}
		if len(page.Undecodable()) > 0 {
			return errors.Join(page.Undecodable()...)
		}
		if page.Continue == "" {
			return nil
		}
		if err := pages.Next(page.Continue); err != nil {
			return fmt.Errorf("list of %s: %w", a.lister.resource, err)
		}
		options = metav1.ListOptions{Continue: page.Continue, Limit: albumPage}
	}
}

// replay goes through what a watch can still give.
func (a *album[T]) replay(ctx context.Context, since string, created map[types.UID]string, missing map[types.UID]bool) {
	seconds := int64(2)
	w, err := a.lister.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: since, TimeoutSeconds: &seconds})
	if err != nil {
		return
	}
	defer w.Stop()
	fresh := map[types.UID]bool{} // nobody has followed what they stand for from its beginning, which is known
	first := map[string]string{}  // by name, with which version the first of these has begun
	for event := range w.ResultChan() {
		o, ok := event.Object.(*Object)
		if !ok {
			continue
		}
		if fresh[o.UID] = fresh[o.UID] || event.Type == watch.Added || created[o.UID] != ""; !fresh[o.UID] {
			continue
		}
		if _, e := a.extract(o); e == nil || !a.begun(e.value) {
			continue
		}
		if first[o.Name] == "" {
			first[o.Name] = cmp.Or(created[o.UID], o.ResourceVersion)
		}
		if missing[o.UID] {
			a.recalled(o, first[o.Name])
		}
		if delete(missing, o.UID); len(missing) == 0 {
			return
		}
	}
}

// recalled notes since when there is something of an object's name.
func (a *album[T]) recalled(o *Object, since string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[o.Name]; e != nil && e.uid == o.UID && a.missed[o.Name] == nil {
		e.since = since
	}
}
