package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// script drives the browser. Its path is that from the top of the repository.
const script = "bench/timeline/figures.mjs"

// A tab is what opens the page in a browser: Node, which drives Chromium.
type tab struct{ node, chromium string }

// newTab finds the programs.
func newTab() (*tab, error) {
	t := &tab{}
	var errs []error
	for name, into := range map[string]*string{"node": &t.node, "chromium": &t.chromium} {
		var err error
		if *into, err = exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("the page is measured in Chromium, which Node drives: install %s (make setup SETUP_FOR=web): %w", name, err))
		}
	}
	for _, needed := range []string{script, "test/web/node_modules/playwright-core"} {
		if _, err := os.Stat(needed); err != nil {
			errs = append(errs, fmt.Errorf("run this at the top of the repository, after make test-browser: %w", err))
		}
	}
	return t, errors.Join(errs...)
}

// A visit is one browser on the page, from its start to its end.
type visit struct {
	cmd  *exec.Cmd
	in   io.Closer
	out  *json.Decoder
	said *bytes.Buffer
}

// begin starts a browser that takes one figure.
func (t *tab) begin(ctx context.Context, s *served, figure string, options any) (*visit, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, t.node, script, figure, string(text))
	cmd.Env = append(os.Environ(), "KUBEREWIND_PAGE="+s.Page, "KUBEREWIND_CODES="+s.Codes, "KUBEREWIND_CHROMIUM="+t.chromium)
	v := &visit{cmd: cmd, said: new(bytes.Buffer)}
	cmd.Stderr = v.said
	if v.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	v.out = json.NewDecoder(out)
	return v, cmd.Start()
}

// read reads the next value that the browser says.
func (v *visit) read(into any) error {
	err := v.out.Decode(into)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the browser gave no figure: %w", errors.Join(err, v.end()))
}

// end has the browser end, if it did not yet, and waits for it.
func (v *visit) end() error {
	_ = v.in.Close() // never fails
	if err := v.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(v.said.String()))
	}
	return nil
}

// take takes one figure to its end.
func (t *tab) take(ctx context.Context, s *served, figure string, options, into any) error {
	v, err := t.begin(ctx, s, figure, options)
	if err != nil {
		return err
	}
	if err := v.read(into); err != nil {
		return err
	}
	return v.end()
}
