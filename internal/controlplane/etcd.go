package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// askTimeout bounds one question to a component, which may be paused.
const askTimeout = 2 * time.Second

// Etcd is the store of all API servers of a control plane: one member, without TLS.
type Etcd struct {
	*Component
	dataDir   string
	extra     []string
	clientURL string // fixed at the first start: the API servers know it
	peerURL   string
}

func newEtcd(dir, path string, extra []string) *Etcd {
	e := &Etcd{dataDir: filepath.Join(dir, "etcd-data"), extra: extra}
	e.Component = &Component{name: "etcd", dir: dir, path: path, arguments: e.arguments, ready: e.ready}
	return e
}

// start chooses ports until etcd gets them.
func (e *Etcd) start(ctx context.Context) error {
	var err error
	for range bindAttempts {
		if err = e.choosePorts(ctx); err != nil {
			return err
		}
		if err = e.Start(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

func (e *Etcd) choosePorts(ctx context.Context) error {
	client, err := freePort(ctx)
	if err != nil {
		return err
	}
	peer, err := freePort(ctx)
	e.clientURL, e.peerURL = "http://"+address(client), "http://"+address(peer)
	return err
}

func (e *Etcd) arguments(context.Context) ([]string, error) {
	return append([]string{
		"--name=default",
		"--data-dir=" + e.dataDir,
		"--listen-client-urls=" + e.clientURL,
		"--advertise-client-urls=" + e.clientURL,
		"--listen-peer-urls=" + e.peerURL,
		"--initial-advertise-peer-urls=" + e.peerURL,
		"--initial-cluster=default=" + e.peerURL,
		// Data must outlive the process, which the page cache sees to, and not the machine.
		"--unsafe-no-fsync",
		// The default of 2 GiB is reached by a long test without compaction; then etcd refuses writes.
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}, e.extra...), nil
}

func (e *Etcd) ready(ctx context.Context) error {
	return ask(ctx, http.DefaultClient, e.clientURL+"/health", "")
}

// URL returns the address of etcd's client port. It stays the same over restarts.
func (e *Etcd) URL() string { return e.clientURL }

// Revision returns the current revision: that of the newest write. Kubernetes calls it the resource version.
func (e *Etcd) Revision(ctx context.Context) (int64, error) {
	var revision int64
	err := e.use(ctx, func(client *clientv3.Client) error {
		response, err := client.Get(ctx, "/", clientv3.WithCountOnly())
		if err == nil {
			revision = response.Header.Revision
		}
		return err
	})
	return revision, e.wrap("reading the revision of", err)
}

// Compact forgets what was before the revision. An API server with a watch cache may still serve older versions from
// it; one started with --watch-cache=false answers 410.
func (e *Etcd) Compact(ctx context.Context, revision int64) error {
	err := e.use(ctx, func(client *clientv3.Client) error {
		_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		return err
	})
	return e.wrap("compacting", err)
}

// Compacted returns the oldest revision that can be read: that of the last compaction, 1 if there was none. It is known not to be
// older than another one.
func (e *Etcd) Compacted(ctx context.Context, known int64) (int64, error) {
	known = max(known, 1)
	err := e.use(ctx, func(client *clientv3.Client) error {
		readable := func(revision int64) (bool, int64, error) {
			response, err := client.Get(ctx, "/", clientv3.WithCountOnly(), clientv3.WithRev(revision))
			if errors.Is(err, rpctypes.ErrCompacted) {
				return false, 0, nil
			}
			if err != nil {
				return false, 0, err
			}
			return true, response.Header.Revision, nil
		}
		if ok, _, err := readable(known); ok || err != nil {
			return err
		}
		_, current, err := readable(0)
		for gone := known; err == nil && gone+1 < current; {
			var ok bool
			middle := gone + (current-gone)/2
			if ok, _, err = readable(middle); ok {
				current = middle
			} else {
				gone = middle
			}
		}
		known = current
		return err
	})
	return known, e.wrap("reading the compacted revision of", err)
}

// putsAtOnce is how many writes wait for etcd together.
const putsAtOnce = 16

// Put writes values by their keys, each in a revision of its own, in no order. API servers take them for what one of them has stored.
func (e *Etcd) Put(ctx context.Context, values iter.Seq2[string, []byte]) error {
	err := e.use(ctx, func(client *clientv3.Client) error {
		puts, ctx := errgroup.WithContext(ctx)
		puts.SetLimit(putsAtOnce)
		for key, value := range values {
			puts.Go(func() error {
				_, err := client.Put(ctx, key, string(value))
				return err
			})
		}
		return puts.Wait()
	})
	return e.wrap("writing to", err)
}

// use runs do with a client of its own: one that lives on would need seconds to find etcd again after each fault.
func (e *Etcd) use(ctx context.Context, do func(*clientv3.Client) error) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.clientURL}, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close())
}

// ask does a GET and returns nil if the answer is 200; otherwise an error with the answer's body. It keeps no
// connection open.
func ask(ctx context.Context, client *http.Client, url, token string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = &answerError{status: response.Status, body: string(body)}
	}
	return err
}

// answerError is an answer that says that the component is there but not ready.
type answerError struct{ status, body string }

func (e *answerError) Error() string { return fmt.Sprintf("%s: %s", e.status, e.body) }
