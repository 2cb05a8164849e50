package rollback

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trust is what has to be shown before a list is trusted of a stream that has left its history. Streams.mu protects it.
type trust struct {
	window     window        // how far back the server's cache can be watched
	cacheCheck *cacheCheck   // what that has to show; nil for nothing
	undone     servedVersion // what was served and is not in etcd any more
	finder     *Stream       // who has proved that the history is no more, if that may be of another etcd
}

// doubtLocked is what the cache will have to show if a stream leaves its history now.
func newCacheCheckLocked(c *Stream, f *fork) *cacheCheck {
	c.trust.window.settle(c.following.opened)
	return newCacheCheck(c.trust.window, max(c.progress.position, c.living.newest().revision), f)
}

// leftLocked notes that the stream has left its history.
func (t *trust) rolledBackLocked(check *cacheCheck) { t.cacheCheck, t.undone = check, servedVersion{} }

// listedLocked notes that a trusted list is complete. It is anew if it is one after a history that is no more.
func (t *trust) listedLocked(afterRollback bool) {
	t.cacheCheck, t.finder = nil, nil
	if afterRollback {
		t.window = window{openedFrom: t.window.openedFrom} // The watch may be open already.
	}
}

// Truthful implements reflector.History. After a rollback, the first list from a cache that has begun anew says where the others are
// listed as well. Otherwise a quiet stream that was listed before a busy one would have to look at each revision between the
// two, because nobody knows whose it is.
func (c *Stream) Truthful(ctx context.Context, resourceVersion string, items []any) (at string, err error) {
	listed, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // opaque versions cannot be compared
	}
	return (&firstPage{stream: c, at: listed, items: items}).check(ctx)
}

// firstPage is that of a list which may come from the server's cache.
type firstPage struct {
	stream *Stream
	at     uint64 // the resource version
	items  []any
}

// trusted returns an error while the list does not show the present state. At is as in reflector.History.
func (p *firstPage) check(ctx context.Context) (at string, err error) {
	if p.inAnotherEtcd(ctx) {
		return "", nil
	}
	if err := p.checkUndone(ctx); err != nil {
		return "", err
	}
	if err := p.checkInEtcd(ctx); err != nil {
		return "", err
	}
	cache, err := p.checkCache(ctx)
	if err != nil {
		return "", err
	}
	return p.commonList(cache), nil
}

// elsewhere reports whether the stream is proved to be in another etcd than the one for which it has left its history. That was
// not known then.
func (p *firstPage) inAnotherEtcd(ctx context.Context) bool {
	p.stream.all.mu.Lock()
	finder := p.stream.trust.finder
	p.stream.all.mu.Unlock()
	if finder == nil {
		return false
	}
	elsewhere, err := inAnotherEtcd(ctx, p.stream, []*Stream{finder})
	return err == nil && elsewhere
}

// renewed returns an error while the list may come from a cache that was begun in the old history.
func (p *firstPage) checkCache(ctx context.Context) (cacheAge, error) {
	p.stream.all.mu.Lock()
	c := p.stream.trust.cacheCheck
	p.stream.all.mu.Unlock()
	if c == nil {
		return cacheTrusted, nil
	}
	return c.check(ctx, &p.stream.ask, p.at)
}

// lacksUndone returns an error while the API server serves what is not in etcd any more.
func (p *firstPage) checkUndone(ctx context.Context) error {
	for o, undone := range p.undone() {
		result, err := o.ask.look(ctx, undone, undone.revision)
		if err != nil && o == p.stream {
			return err
		}
		if err != nil || result == match || result == inconclusive {
			continue // Nobody waits for another stream that the server does not answer for.
		}
		list, err := o.ask.listOne(ctx, undone, metav1.ListOptions{})
		if err != nil && o == p.stream {
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

// undone gives what was served and is not in this etcd any more, by the stream that it was served of.
func (p *firstPage) undone() map[*Stream]servedVersion {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	found := map[*Stream]servedVersion{}
	for _, o := range p.stream.all.streams {
		if o.etcd == p.stream.etcd && o.trust.undone.name != "" {
			found[o] = o.trust.undone
		}
	}
	return found
}

// isInEtcd returns an error if etcd does not have what the list shows.
func (p *firstPage) checkInEtcd(ctx context.Context) error {
	var shown living
	shown.addPage(p.items)
	newest := shown.newest()
	switch result, err := p.stream.ask.look(ctx, newest, p.at); {
	case err != nil:
		return err
	case result == future:
		return errors.New("etcd has not come to it: the API server answers from its cache; restart it")
	case result == mismatch && newest.name != "":
		return fmt.Errorf("etcd does not hold %s/%s as listed: the API server answers from its cache; restart it", newest.namespace, newest.name)
	}
	return nil
}

// baseFor is how long others are listed where the first was. To list all resources takes some seconds.
const commonListFor = 10 * time.Second

// base is where the others in this etcd were listed after a rollback, "" if nobody was or the stream need not be listed there. The
// first stream whose cache has begun anew says where. Most caches of a restarted API server begin at about the same revision, and
// can be watched from there. A cache of which that is not known may have something of the old history after an earlier revision.
func (p *firstPage) commonList(cache cacheAge) (at string) {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	etcd := p.stream.etcd
	if !p.stream.history.rolledBack {
		return ""
	}
	if time.Since(etcd.commonListTime) > commonListFor {
		etcd.commonList = 0 // Caches may have begun anew since, and cannot be watched from there.
	}
	if etcd.commonList == 0 && cache == cacheNew {
		etcd.commonList, etcd.commonListTime = p.at, time.Now()
	}
	if etcd.commonList != 0 && (cache != cacheTrusted || etcd.commonList > p.at) {
		at = strconv.FormatUint(etcd.commonList, 10)
	}
	return at
}
