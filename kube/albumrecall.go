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

// dateAll notes that some objects have begun after a resource version.
func (a *album[T]) dateAll(some map[types.UID]bool, since string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, e := range a.entries {
		if some[e.uid] && e.since == "" && a.begun(e.value) && a.missed[name] == nil {
			e.since = since
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

// recall looks for where some objects of an album have begun, after the resource version that an earlier run had reached. It
// takes at most a few seconds; what etcd has forgotten stays unknown.
type recall[T any] struct {
	album   *album[T]
	since   string               // what the earlier run had reached
	created map[types.UID]string // what it knew of, with the resource version of its creation
	missing map[types.UID]bool   // whose begin is not known yet
}

func (r *recall[T]) run(ctx context.Context) {
	if r.replay(ctx); len(r.missing) == 0 || ctx.Err() != nil {
		return
	}
	// A server that was restarted has forgotten what etcd has not.
	if err := r.dropThoseAt(ctx, r.since); err != nil {
		r.album.log.Debug("when definitions began is not known", "since", r.since, "error", err)
		return
	}
	r.album.dateAll(r.missing, r.since)
}

// dropThoseAt leaves the ones that had not begun yet at a resource version.
func (r *recall[T]) dropThoseAt(ctx context.Context, version string) error {
	options := metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: albumPage}
	var pages paging.Guard
	for {
		page, err := r.album.lister.Page(ctx, options)
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			if _, e := r.album.extract(o); e == nil || r.album.begun(e.value) {
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
			return fmt.Errorf("list of %s: %w", r.album.lister.resource, err)
		}
		options = metav1.ListOptions{Continue: page.Continue, Limit: albumPage}
	}
}

// replay goes through what a watch can still give.
func (r *recall[T]) replay(ctx context.Context) {
	seconds := int64(2)
	w, err := r.album.lister.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: r.since, TimeoutSeconds: &seconds})
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
		if fresh[o.UID] = fresh[o.UID] || event.Type == watch.Added || r.created[o.UID] != ""; !fresh[o.UID] {
			continue
		}
		if _, e := r.album.extract(o); e == nil || !r.album.begun(e.value) {
			continue
		}
		if first[o.Name] == "" {
			first[o.Name] = cmp.Or(r.created[o.UID], o.ResourceVersion)
		}
		if r.missing[o.UID] {
			r.album.recalled(o, first[o.Name])
		}
		if delete(r.missing, o.UID); len(r.missing) == 0 {
			return
		}
	}
}
