package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A Signal is the cause of a context that a signal ended.
type Signal struct {
	Name string
	Code int // exit code: 128 plus the signal's number
}

func (s *Signal) Error() string { return "ended by " + s.Name }

// key is the context key of the watcher.
type key struct{}

type watcher struct {
	signals chan os.Signal

	mu     sync.Mutex // protects handle
	handle func(os.Signal)
}

// End returns a context that ends at the first SIGINT or SIGTERM. A second signal ends the program at once.
func End(ctx context.Context) context.Context {
	w := &watcher{signals: make(chan os.Signal, 8)}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, key{}, w))
	signal.Notify(w.signals, os.Interrupt, syscall.SIGTERM)
	// With this, a write to a closed pipe returns an error. Without it, SIGPIPE would end the program before it stops an
	// embedded database.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go w.run(cancel)
	return ctx
}

func (w *watcher) run(end context.CancelCauseFunc) {
	for caught := range w.signals {
		if handle := w.handler(); handle != nil {
			handle(caught)
			continue
		}
		// Stop first: then a second signal ends the program at once, also if the program waits.
		signal.Stop(w.signals)
		end(ended(caught))
		return
	}
}

func (w *watcher) handler() func(os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handle
}

// Take passes all further signals to a function, including the terminal's signals SIGHUP and SIGQUIT. The signals then no
// longer end the context. Without End, Take does nothing.
func Take(ctx context.Context, handle func(os.Signal)) {
	w, ok := ctx.Value(key{}).(*watcher)
	if !ok {
		return
	}
	w.mu.Lock()
	w.handle = handle
	w.mu.Unlock()
	for _, more := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(more) { // for example, under nohup
			signal.Notify(w.signals, more)
		}
	}
}

func ended(by os.Signal) error {
	if by == syscall.SIGTERM {
		return &Signal{Name: "SIGTERM", Code: 143}
	}
	return &Signal{Name: "SIGINT", Code: 130}
}
