package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
)

// A follower keeps the events of the watches of one resource.
type follower struct {
	resource data.Resource
	index    int
	body     io.ReadCloser
	at       string            // the resource version up to which it was kept
	living   map[string]string // by UID, the resource version of each object that lives
}

func newFollower(resource data.Resource, index int, at string) *follower {
	return &follower{resource: resource, index: index, at: at, living: map[string]string{}}
}

func (f *follower) name() schema.GroupResource {
	return schema.GroupResource{Group: f.resource.Group, Resource: f.resource.Resource}
}

// follow keeps the events of a resource in a file: a time in a line, and what the server has sent in the next.
func (c *Capture) follow(ctx context.Context, f *follower) (err error) {
	if f.body, err = c.watch(ctx, f); err != nil {
		return fmt.Errorf("watch of %s: %w", f.resource.Resource, err)
	}
	name := filepath.Join(c.dir, strconv.Itoa(f.index))
	file, err := os.Create(name)
	if err != nil {
		return errors.Join(err, f.body.Close())
	}
	c.files = append(c.files, name)
	c.at.Store(f.name(), f.at)
	c.group.Go(func() error {
		out := bufio.NewWriterSize(file, 1<<20)
		err := fmt.Errorf("watch of %s: %w", f.resource.Resource, c.keepAll(ctx, f, out))
		if errors.Is(context.Cause(ctx), errStopped) {
			err = nil
		}
		return errors.Join(err, out.Flush(), file.Close())
	})
	return nil
}

func (c *Capture) watch(ctx context.Context, f *follower) (io.ReadCloser, error) {
	return c.get(ctx, c.path(f.resource), url.Values{"watch": {"true"}, "resourceVersion": {f.at}, "timeoutSeconds": {"86400"}})
}

// reopens is how often a watch may end, and how often a request may be put off: more often, something is wrong.
const reopens = 5

// keepAll reopens a watch that the server ended, at its end. It returns why it cannot.
func (c *Capture) keepAll(ctx context.Context, f *follower, out io.Writer) error {
	for range reopens {
		ended := errors.Join(c.keep(ctx, f, out), f.body.Close())
		var err error
		switch {
		case errors.Is(ended, errExpired):
			err = c.skip(ctx, f)
		case !errors.Is(ended, io.EOF):
			return ended
		}
		if err == nil {
			f.body, err = c.watch(ctx, f)
		}
		if err != nil {
			return errors.Join(ended, err)
		}
	}
	return errors.Join(fmt.Errorf("it has ended %d times", reopens), f.body.Close())
}

// skip moves to a new list, if the watch has shown all that is in it.
func (c *Capture) skip(ctx context.Context, f *follower) error {
	events, at, err := c.list(ctx, f.index, f.resource, "")
	if err != nil {
		return err
	}
	listed := map[string]string{}
	for _, e := range events {
		listed[e.UID] = strconv.FormatUint(e.RV, 10)
	}
	if !maps.Equal(listed, f.living) {
		return fmt.Errorf("a list shows objects that no watch has shown since resource version %s; make the capture again", f.at)
	}
	f.at = at
	c.at.Store(f.name(), at)
	return nil
}

// keep goes on until the watch ends.
func (c *Capture) keep(ctx context.Context, f *follower, out io.Writer) error {
	lines := bufio.NewReaderSize(f.body, 1<<20)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("it has ended: %w", err) // what came of the next event is not kept
		}
		if err := f.note(text); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%d\n%s", time.Now().UnixNano(), text); err != nil {
			return err
		}
		c.events.Add(1)
		c.at.Store(f.name(), f.at)
		if err := c.announce(ctx, f, text); err != nil {
			return err
		}
	}
}

// note takes from an event where the watch is.
func (f *follower) note(text []byte) error {
	var seen struct {
		Type   watch.EventType
		Object struct {
			Code     int
			Message  string
			Metadata struct{ UID, ResourceVersion string }
		}
	}
	if err := json.Unmarshal(text, &seen); err != nil {
		return err
	}
	o := seen.Object
	switch seen.Type {
	case watch.Error:
		if o.Code == http.StatusGone {
			return fmt.Errorf("%w: %s", errExpired, o.Message)
		}
		return fmt.Errorf("the server said: %s", text)
	case watch.Deleted:
		delete(f.living, o.Metadata.UID)
	default:
		f.living[o.Metadata.UID] = o.Metadata.ResourceVersion
	}
	f.at = o.Metadata.ResourceVersion
	return nil
}
