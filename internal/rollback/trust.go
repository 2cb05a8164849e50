package rollback

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Truthful implements reflector.History.
func (c *Stream) Truthful(ctx context.Context, resourceVersion string, items []any) error {
	at, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // opaque versions cannot be compared
	}
	if c.provedElsewhere(ctx) {
		return nil
	}
	if err := c.stillCached(ctx); err != nil {
		return err
	}
	var shown living
	shown.show(items)
	newest := shown.newest()
	switch what, err := c.look(ctx, newest, at); {
	case err != nil:
		return err
	case what == ahead:
		return errors.New("etcd has not come to it: the API server answers from its cache; restart it")
	case what == other && newest.name != "":
		return fmt.Errorf("etcd does not hold %s/%s as listed: the API server answers from its cache; restart it", newest.namespace, newest.name)
	}
	return c.renewed(ctx, at)
}

// provedElsewhere reports whether the stream is proved to be in another etcd than the one for which it has left its history.
// That was not known then.
func (c *Stream) provedElsewhere(ctx context.Context) bool {
	c.all.mu.Lock()
	finder := c.stranger
	c.all.mu.Unlock()
	if finder == nil {
		return false
	}
	elsewhere, err := c.apartFrom(ctx, []*Stream{finder})
	return err == nil && elsewhere
}

// stillCached returns an error while the API server serves what is not in etcd any more.
func (c *Stream) stillCached(ctx context.Context) error {
	for o, undone := range c.undoneInEtcd() {
		what, err := o.look(ctx, undone, undone.revision)
		if err != nil && o == c {
			return err
		}
		if err != nil || what == same || what == unknown {
			continue // Nobody waits for another stream that the server does not answer for.
		}
		list, err := o.listOne(ctx, undone, metav1.ListOptions{})
		if err != nil && o == c {
			return err
		}
		if err != nil {
			continue
		}
		if served, err := o.find(list, undone); err != nil || served {
			if err != nil {
				return err
			}
			return fmt.Errorf("the API server still serves %s %s/%s at resource version %d, which is not in etcd: restart it", o.name, undone.namespace, undone.name, undone.revision)
		}
	}
	return nil
}
