package past

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"k8s.io/klog/v2"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/running"
)

// AnyPort of loopback is where a server listens by default. With a fixed one, a second database could not be served.
const AnyPort = "127.0.0.1:0"

// A Server serves a record.
type Server struct {
	*serve.Server
	handler *apiserver.Handler
}

// Listen makes a server of records. The handler of the options is made here, with the records. What libraries log of odd requests goes
// where the server logs.
func Listen(records []*history.Record, api apiserver.Options, o serve.Options) (*Server, error) {
	klog.SetSlogLogger(o.Log.With("from", "apimachinery"))
	api.Records, api.Log = records, o.Log
	handler, err := apiserver.New(api)
	if err != nil {
		return nil, err
	}
	o.Handler = handler
	server, err := serve.Listen(o)
	if err != nil {
		handler.Close()
		return nil, err
	}
	return &Server{Server: server, handler: handler}, nil
}

// Close ends the server, and what its handler started.
func (s *Server) Close() {
	s.Server.Close()
	s.handler.Close()
}

// Publish has other commands find a server, for each of its records. The function takes that back.
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
		one, err := file.Publish(folders(e))
		if err != nil {
			return nil, errors.Join(err, remove())
		}
		published = append(published, one)
	}
	return remove, nil
}

// Running is the access to a server of the record that another process runs, or nil.
func Running(ctx context.Context, e *env.Env, rec *env.Record) (*serve.Access, error) {
	identity, err := running.Identity(ctx, rec.Pool())
	if err != nil {
		return nil, err
	}
	found, left, err := running.Find(ctx, folders(e), identity, rec.Cluster().UID)
	for _, why := range left {
		e.Note("left out: " + why)
	}
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Access, nil
}

func folders(e *env.Env) []string { return running.Folders(e.Variable("XDG_RUNTIME_DIR"), e.DataDir) }

// Own starts a server of one's own. The function ends it.
func Own(ctx context.Context, rec *env.Record, intentions Intentions) (access *serve.Access, end func() error, err error) {
	var api apiserver.Options
	done, err := intentions.Open(&api)
	if err != nil {
		return nil, nil, err
	}
	// What a client is to know, it is told in its answers: the screen is the client's.
	server, err := Listen([]*history.Record{rec.Record}, api, serve.Options{Address: AnyPort, Log: slog.New(slog.DiscardHandler)})
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
