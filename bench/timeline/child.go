package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// serverChild is the part of this program that serves a record.
const serverChild = "timeline-server"

// Children are the parts of a program that measures this.
func Children() measure.Children { return measure.Children{serverChild: serveRecord} }

// A job is the child's task.
type job struct{ Database string }

// A served is what a client needs to know of the server.
type served struct {
	Page  string // with a slash at its end
	Codes string // where codes of links are given; the path is secret
}

// serveRecord serves as replay serve does, until its input ends.
func serveRecord(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var j job
	ctx, stop, err := measure.UntilEnd(ctx, in, &j)
	if err != nil {
		return err
	}
	defer stop()
	record, err := history.Open(ctx, j.Database, history.Options{})
	if err != nil {
		return err
	}
	defer record.Close()
	server, err := past.Listen([]*history.Record{record}, past.Options{
		Front: serve.Options{Address: past.AnyPort, Log: slog.New(slog.DiscardHandler)}, Page: &past.Page{Address: past.AnyPort},
	})
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := net.Listen("tcp", past.AnyPort)
	if err != nil {
		return err
	}
	path := "/" + serve.NewToken()
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		link, _ := server.Link()
		fmt.Fprint(w, link.Code)
	})
	codes := &http.Server{Handler: mux}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(ctx) })
	group.Go(func() error {
		if err := codes.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return codes.Close()
	})
	if err := json.NewEncoder(out).Encode(served{Page: server.Page(), Codes: "http://" + listener.Addr().String() + path}); err != nil {
		stop()
	}
	return group.Wait()
}
