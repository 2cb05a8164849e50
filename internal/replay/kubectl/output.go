package kubectl

import (
	"context"
	"io"

	"github.com/kuberewind/kuberewind/internal/render"
)

// UntilDone returns a writer that fails after ctx has ended.
func UntilDone(ctx context.Context, out io.Writer) io.Writer { return &untilDone{ctx, out} }

type untilDone struct {
	ctx context.Context // io.Writer has no context argument
	out io.Writer
}

func (w *untilDone) Write(text []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	return w.out.Write(text)
}

// Harmless returns a writer that escapes characters that control a terminal. Each write must be whole: kubectl's code writes
// a description, or a message, at once.
func Harmless(out io.Writer) io.Writer { return &harmless{out, render.Terminal} }

// HarmlessMessages is Harmless for messages: it also shortens them, because they quote what the user typed.
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
