package past

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/running"
)

// Publish writes a file for each record, with which other commands find the server. The returned function removes the files.
func Publish(ctx context.Context, e *env.Env, records []*history.Record, s *Server) (remove func() error, err error) {
	var published []func() error
	remove = func() error {
		var errs []error
		for _, one := range published {
			errs = append(errs, one())
		}
		return errors.Join(errs...)
	}
	for _, record := range records {
		identity, err := running.Identity(ctx, record.Pool())
		if err != nil {
			return nil, errors.Join(err, remove())
		}
		file := &running.Server{Access: s.Access(), Database: identity, Cluster: record.Cluster().UID, PID: os.Getpid()}
		one, err := file.Publish(Folders(e))
		if err != nil {
			return nil, errors.Join(err, remove())
		}
		published = append(published, one)
	}
	return remove, nil
}

// Running returns the access to a server of the record that another process runs, or nil.
func Running(ctx context.Context, e *env.Env, rec *env.Record) (*serve.Access, error) {
	identity, err := running.Identity(ctx, rec.Pool())
	if err != nil {
		return nil, err
	}
	found, left, err := running.Find(ctx, Folders(e), identity, rec.Cluster().UID)
	for _, why := range left {
		e.Note("ignored a running server: " + why)
	}
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Access, nil
}

// Folders returns the folders for files that are valid while a server runs, the best first.
func Folders(e *env.Env) []string { return running.Folders(e.Variable("XDG_RUNTIME_DIR"), e.DataDir) }

// Own starts a server in this process. The returned function stops it.
func Own(ctx context.Context, rec *env.Record, intentions Intentions) (access *serve.Access, end func() error, err error) {
	var o Options
	done, err := intentions.Open(&o.API)
	if err != nil {
		return nil, nil, err
	}
	// Discard the log: clients get all errors in their answers, and the terminal belongs to the client.
	o.Front = serve.Options{Address: AnyPort, Log: slog.New(slog.DiscardHandler)}
	server, err := Listen([]*history.Record{rec.Record}, o)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	own := server.Access()
	return &own, func() error {
		cancel()
		err := <-ended
		server.Close()
		return errors.Join(err, done())
	}, nil
}
