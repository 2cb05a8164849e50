package open

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// own starts a server of the record, which runs until the command ends.
func (c *command) own(ctx context.Context, rec *env.Record, focus past.Focus) error {
	records := []*history.Record{rec.Record}
	server, err := past.Listen(records, past.Options{
		Front: serve.Options{Address: past.AnyPort, Log: c.env.Log()}, Page: &past.Page{Address: past.PagePort, OrAny: true},
	})
	if err != nil {
		return err
	}
	defer server.Close()
	remove, err := past.Publish(ctx, c.env, records, server)
	if err != nil {
		return err
	}
	c.env.Note("no server of this database runs, so this command started one: end it with Ctrl-C")
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(serving) })
	group.Go(func() error { return c.openOnce(serving, server, focus) })
	return errors.Join(group.Wait(), remove())
}

// openOnce opens the page. If no browser came, the server keeps running: a second "open" finds it.
func (c *command) openOnce(ctx context.Context, server *past.Server, focus past.Focus) error {
	access := server.Access()
	err := c.openLink(ctx, &access, focus)
	var unopened *unopenedError
	if errors.As(err, &unopened) {
		c.env.Note(err.Error())
	}
	if unopened != nil || ctx.Err() != nil { // the end of the command is no failure
		err = nil
	}
	return err
}
