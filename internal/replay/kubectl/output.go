package kubectl

import (
	"context"
	"io"

	"github.com/kuberewind/kuberewind/internal/render"
)

// UntilDone refuses to write when the context has ended.
func UntilDone(ctx context.Context, out io.Writer) io.Writer { return &untilDone{ctx, out} }

type untilDone struct {
	ctx context.Context // An io.Writer has no other way to know.
	out io.Writer
}

func (w *untilDone) Write(text []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	return w.out.Write(text)
}

// Harmless keeps a text from steering a terminal. Each part must be whole: kubectl's code writes a description, or a message, at once.
func Harmless(out io.Writer) io.Writer { return &harmless{out, render.Terminal} }

// HarmlessMessages does so for messages, which quote what was given, and keeps them short.
func HarmlessMessages(out io.Writer) io.Writer {
	return &harmless{out, func(text string) string { return render.Short(render.Terminal(text)) }}
}

type harmless struct {
	out  io.Writer
	made func(string) string
}

func (w *harmless) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.out, w.made(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
