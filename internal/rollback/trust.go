package rollback

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Truthful implements reflector.History. After a rollback, the first list of an etcd that is trusted says where the others are
// listed as well. Otherwise a quiet stream that was listed before a busy one would have to look at each revision between the
// two, because nobody knows whose it is.
func (c *Stream) Truthful(ctx context.Context, resourceVersion string, items []any) (at string, err error) {
	listed, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // opaque versions cannot be compared
	}
	if c.provedElsewhere(ctx) {
		return "", nil
	}
	if err := c.stillCached(ctx); err != nil {
		return "", err
	}
	if err := c.shows(ctx, listed, items); err != nil {
		return "", err
	}
	anew, err := c.renewed(ctx, listed)
	if err != nil {
		return "", err
	}
	return c.baseOr(listed, anew), nil
}

// shows returns an error if etcd does not have what a list shows.
func (c *Stream) shows(ctx context.Context, listed uint64, items []any) error {
	var shown living
	shown.show(items)
	newest := shown.newest()
	switch what, err := c.ask.look(ctx, newest, listed); {
	case err != nil:
		return err
	case what == ahead:
		return errors.New("etcd has not come to it: the API server answers from its cache; restart it")
	case what == other && newest.name != "":
		return fmt.Errorf("etcd does not hold %s/%s as listed: the API server answers from its cache; restart it", newest.namespace, newest.name)
	}
	return nil
}

// baseOr is where the others in this etcd were listed after a rollback, "" if the stream is the first or need not be listed
// there. A cache that is not known to have begun anew may have something of the old history after an earlier revision.
func (c *Stream) baseOr(listed uint64, anew bool) (at string) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.reversed {
		return ""
	}
	if c.etcd.base == 0 {
		c.etcd.base = listed
	}
	if anew || c.etcd.base > listed {
		at = strconv.FormatUint(c.etcd.base, 10)
	}
	return at
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
		what, err := o.ask.look(ctx, undone, undone.revision)
		if err != nil && o == c {
			return err
		}
		if err != nil || what == same || what == unknown {
			continue // Nobody waits for another stream that the server does not answer for.
		}
		list, err := o.ask.listOne(ctx, undone, metav1.ListOptions{})
		if err != nil && o == c {
			return err
		}
		if err != nil {
			continue
		}
		if served, err := o.ask.find(list, undone); err != nil || served {
			if err != nil {
				return err
			}
			return fmt.Errorf("the API server still serves %s %s/%s at resource version %d, which is not in etcd: restart it", o.ask.name, undone.namespace, undone.name, undone.revision)
		}
	}
	return nil
}
