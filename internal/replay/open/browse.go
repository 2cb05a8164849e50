package open

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

// opener returns the program that opens files in a browser, "" without a display or such a program.
func opener(e *env.Env) string {
	name, display := "xdg-open", e.Variable("DISPLAY") != "" || e.Variable("WAYLAND_DISPLAY") != ""
	if runtime.GOOS == "darwin" {
		name, display = "open", e.Variable("SSH_CONNECTION") == ""
	}
	if !display {
		return ""
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// forward is a page that redirects a browser to a link, without a script.
var forward = template.Must(template.New("").Parse(`<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={{.}}">
<title>kuberewind</title>
<p><a href="{{.}}">Open the timeline</a></p>
`))

// writeForward writes that page into the first folder in which it can create a file.
func writeForward(folders []string, url string) (name string, err error) {
	var errs []error
	for _, folder := range folders {
		if name, err = writeInto(folder, url); err == nil {
			return name, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("write the file that opens the page in the browser: %w", errors.Join(errs...))
}

func writeInto(folder, url string) (name string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(folder, "open-*.html") // 0600
	if err != nil {
		return "", err
	}
	if err := errors.Join(forward.Execute(file, url), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// An unopenedError means that no browser used a link.
type unopenedError struct{ command string }

func (e *unopenedError) Error() string {
	return fmt.Sprintf("no browser opened the page within %s: run %q to print a link instead", page.Lifetime, e.command+" open -o json")
}

// browse starts a program that opens the link, and returns when await reports that a browser used the link. failed is the
// reason if the program could not start a browser.
func (c *command) browse(ctx context.Context, program, url string, await func(context.Context) (bool, error)) (failed string, err error) {
	file, err := writeForward(past.Folders(c.env), url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, file)
	cmd.Env, cmd.SysProcAttr = c.env.Environ(), &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not reach the browser
	if err := cmd.Start(); err != nil {
		return "starting a browser failed: " + err.Error(), nil
	}
	go func() {
		if err := cmd.Wait(); err != nil {
			cancel(&startError{program: program, err: err})
		}
	}()
	used, err := await(ctx)
	var unstarted *startError
	switch {
	case used:
		c.env.Note("the page is open in your browser")
		return "", nil
	case errors.As(context.Cause(ctx), &unstarted):
		return unstarted.Error(), nil
	case err != nil:
		return "", err
	}
	return "", &unopenedError{command: c.env.Command}
}

// A startError means that the program that opens browsers failed.
type startError struct {
	program string
	err     error
}

func (e *startError) Error() string {
	return fmt.Sprintf("%s could not start a browser: %v", e.program, e.err)
}
