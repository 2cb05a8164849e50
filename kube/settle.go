package kube

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// settleMost is how many revisions settle looks at, one by one. At a thousand writes a
// second it covers a tenth of one; a definition is announced within less.
const settleMost = 100

// settle prepares a watch of a new resource from a resource version at which it had
// no objects, and returns a later one if it still had none then.
//
// An API server's history of a resource begins when the resource is first asked for,
// after some writes of its own: a watch from the definition's version would be
// refused. etcd knows better: lists at each exact revision in between prove that
// nothing was missed (I3). What cannot be proved leaves the version as it is.
//
// It is an error if the resource is not served: one part of the API server can
// announce it a moment before another serves it.
func (c *Client) settle(ctx context.Context, r Resource, since string) (string, error) {
	lw := c.ListWatch(r, "")
	list, err := lw.Page(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%s is not served yet: %w", r, err)
	}
	if err != nil {
		return since, nil //nolint:nilerr // what else may be wrong is for the stream to find out
	}
	from, to, ok := revisions(since, list.ResourceVersion)
	if !ok || to > from+settleMost {
		return since, nil
	}
	for at := from + 1; at <= to; at++ {
		version := strconv.FormatUint(at, 10)
		list, err := lw.Page(ctx, metav1.ListOptions{
			Limit: 1, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if err != nil || len(list.Items)+len(list.Undecodable()) > 0 {
			return since, nil //nolint:nilerr // what cannot be proved leaves the version as it is
		}
		since = version
	}
	return since, nil
}

// revisions reads two resource versions as etcd's revisions, which is what they are
// for custom resources.
func revisions(since, now string) (from, to uint64, ok bool) {
	from, err1 := strconv.ParseUint(since, 10, 64)
	to, err2 := strconv.ParseUint(now, 10, 64)
	return from, to, err1 == nil && err2 == nil && from <= to
}
