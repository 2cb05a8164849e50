package rollback

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CheckList implements reflector.History. After a rollback, the first list from a new cache says at which resource
// version the other streams are listed. Otherwise a quiet stream could be listed before a busy one. No stream would
// have claimed the revisions between the two lists, and the quiet one would have to look at each of them.
func (c *Stream) CheckList(ctx context.Context, resourceVersion string, items []any) (at string, err error) {
	listed, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // opaque versions cannot be compared
	}
	return (&firstPage{stream: c, listedRevision: listed, items: items}).check(ctx)
}

// firstPage is the first page of a list, which may come from the server's cache.
type firstPage struct {
	stream         *Stream
	listedRevision uint64 // the resource version of the list
	items          []any
}

// check returns an error as long as the list does not show the present state. at is as in reflector.History.
func (p *firstPage) check(ctx context.Context) (at string, err error) {
	if p.inAnotherEtcd(ctx) {
		return "", nil
	}
	if err := p.checkLostVersions(ctx); err != nil {
		return "", err
	}
	if err := p.checkInEtcd(ctx); err != nil {
		return "", err
	}
	source, err := p.checkCache(ctx)
	if err != nil {
		return "", err
	}
	return p.commonList(source), nil
}

// inAnotherEtcd reports whether the stream is by now proved to be in another etcd than the one that was put back.
// When the stream was rolled back, that was not known.
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

// checkCache returns an error as long as the list may come from a cache that began in the old history.
func (p *firstPage) checkCache(ctx context.Context) (listSource, error) {
	p.stream.all.mu.Lock()
	c := p.stream.trust.cacheCheck
	p.stream.all.mu.Unlock()
	if c == nil {
		return fromUncontestedCache, nil
	}
	return c.check(ctx, &p.stream.ask, p.listedRevision)
}

// checkLostVersions returns an error as long as the API server serves a version that is no longer in etcd.
func (p *firstPage) checkLostVersions(ctx context.Context) error {
	for o, lost := range p.lostVersions() {
		result, err := o.ask.look(ctx, lost, lost.revision)
		if err != nil && o == p.stream {
			return err
		}
		if err != nil || result == match || result == inconclusive {
			continue // The list does not wait for another stream for which the server does not answer.
		}
		list, err := o.ask.listOne(ctx, lost, metav1.ListOptions{})
		if err != nil && o == p.stream {
			return err
		}
		if err != nil {
			continue
		}
		if served, err := o.ask.find(list, lost); err != nil || served {
			if err != nil {
				return err
			}
			return fmt.Errorf("the API server still serves %s %s/%s at resource version %d, which is not in etcd: restart the API server", o.ask.name, lost.namespace, lost.name, lost.revision)
		}
	}
	return nil
}

// lostVersions returns the versions that were served and are no longer in this etcd, by the stream that was served them.
func (p *firstPage) lostVersions() map[*Stream]servedVersion {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	found := map[*Stream]servedVersion{}
	for _, o := range p.stream.all.streams {
		if o.etcd == p.stream.etcd && o.trust.lostVersion.name != "" {
			found[o] = o.trust.lostVersion
		}
	}
	return found
}

// checkInEtcd returns an error if etcd does not hold the newest listed version.
func (p *firstPage) checkInEtcd(ctx context.Context) error {
	var shown living
	shown.addPage(p.items)
	newest := shown.newest()
	switch result, err := p.stream.ask.look(ctx, newest, p.listedRevision); {
	case err != nil:
		return err
	case result == future:
		return errors.New("etcd has not reached the listed resource version: restart the API server")
	case result == mismatch && newest.name != "":
		return fmt.Errorf("etcd does not hold %s/%s as listed: restart the API server", newest.namespace, newest.name)
	}
	return nil
}

// commonListFor is how long other streams are listed at the resource version of the first list. To list all
// resources takes some seconds.
const commonListFor = 10 * time.Second

// commonList returns the resource version at which the streams of this etcd are listed after a rollback. It is ""
// if there was no such list, or the stream need not be listed there. The first stream that is listed from a new
// cache sets it. Most caches of a restarted API server begin at about the same revision, and can be watched from
// there. If a cache is not known to be new, it may have something of the old history after an earlier revision.
func (p *firstPage) commonList(source listSource) (at string) {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	etcd := p.stream.etcd
	if !p.stream.history.rolledBack {
		return ""
	}
	if time.Since(etcd.commonListAt) > commonListFor {
		etcd.commonListRevision = 0 // Newer caches may have begun since, which cannot be watched from there.
	}
	if etcd.commonListRevision == 0 && source == fromNewCache {
		etcd.commonListRevision, etcd.commonListAt = p.listedRevision, time.Now()
	}
	if etcd.commonListRevision != 0 && (source != fromUncontestedCache || etcd.commonListRevision > p.listedRevision) {
		at = strconv.FormatUint(etcd.commonListRevision, 10)
	}
	return at
}
