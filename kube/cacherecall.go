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

// remember sets since to the resource version of an object's creation, by UID, for objects whose since is unknown.
func (a *extractCache[T]) remember(created map[types.UID]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, e := range a.entries {
		if e.since == "" && a.begun(e.value) && a.unhandledDeletes[name] == nil {
			e.since = created[e.uid]
		}
	}
}

// setSinceOf sets since for the objects with these UIDs whose since is unknown.
func (a *extractCache[T]) setSinceOf(some map[types.UID]bool, since string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, e := range a.entries {
		if some[e.uid] && e.since == "" && a.begun(e.value) && a.unhandledDeletes[name] == nil {
			e.since = since
		}
	}
}

// setRecalled sets since of one object.
func (a *extractCache[T]) setRecalled(o *Object, since string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[o.Name]; e != nil && e.uid == o.UID && a.unhandledDeletes[o.Name] == nil {
		e.since = since
	}
}

// recall finds out when objects of the cache began, if they began after the resource version that an earlier run had
// reached. It takes at most a few seconds. If etcd has compacted a begin, it stays unknown.
type recall[T any] struct {
	cache   *extractCache[T]
	since   string               // the version that the earlier run had reached
	created map[types.UID]string // definitions that the earlier run knew, with the resource version of their creation
	missing map[types.UID]bool   // objects whose begin is still unknown
}

func (r *recall[T]) run(ctx context.Context) {
	if r.replay(ctx); len(r.missing) == 0 || ctx.Err() != nil {
		return
	}
	// A restarted API server has lost its watch cache. etcd may still have the old revision.
	if err := r.dropBegunAt(ctx, r.since); err != nil {
		r.cache.log.Debug("cannot find out when definitions began", "since", r.since, "error", err)
		return
	}
	r.cache.setSinceOf(r.missing, r.since)
}

// dropBegunAt removes the objects from missing that had already begun at a resource version.
func (r *recall[T]) dropBegunAt(ctx context.Context, version string) error {
	options := metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: cachePageItems}
	var pages paging.Guard
	for {
		page, err := r.cache.lister.Page(ctx, options)
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			if _, e := r.cache.extract(o); e == nil || r.cache.begun(e.value) {
				delete(r.missing, o.UID)
			}
		}
		if len(page.Undecodable()) > 0 {
			return errors.Join(page.Undecodable()...)
		}
		if page.Continue == "" {
			return nil
		}
		if err := pages.Next(page.Continue); err != nil {
			return fmt.Errorf("list of %s: %w", r.cache.lister.resource, err)
		}
		options = metav1.ListOptions{Continue: page.Continue, Limit: cachePageItems}
	}
}

// replay reads what a watch from since still shows.
func (r *recall[T]) replay(ctx context.Context) {
	seconds := int64(2)
	w, err := r.cache.lister.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: r.since, TimeoutSeconds: &seconds})
	if err != nil {
		return
	}
	defer w.Stop()
	fresh := map[types.UID]bool{} // objects that the earlier run did not follow, and whose creation is known
	first := map[string]string{}  // by name: the version at which the first fresh object began
	for event := range w.ResultChan() {
		o, ok := event.Object.(*Object)
		if !ok {
			continue
		}
		if fresh[o.UID] = fresh[o.UID] || event.Type == watch.Added || r.created[o.UID] != ""; !fresh[o.UID] {
			continue
		}
		if _, e := r.cache.extract(o); e == nil || !r.cache.begun(e.value) {
			continue
		}
		if first[o.Name] == "" {
			first[o.Name] = cmp.Or(r.created[o.UID], o.ResourceVersion)
		}
		if r.missing[o.UID] {
			r.cache.setRecalled(o, first[o.Name])
		}
		if delete(r.missing, o.UID); len(r.missing) == 0 {
			return
		}
	}
}
