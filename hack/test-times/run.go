package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// measure runs the command, keeps its output in the file, and prints the table. It returns the command's exit code.
func measure(path string, command []string, out io.Writer) (code int, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 1, err
	}
	file, err := os.Create(path)
	if err != nil {
		return 1, err
	}
	code, err = runInto(file, command, out)
	if err = errors.Join(err, file.Close()); err != nil {
		return max(code, 1), fmt.Errorf("run %s: %w", command[0], err)
	}
	return code, printFile(path, out)
}

func runInto(file io.Writer, command []string, out io.Writer) (code int, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	follow := errors.Join(follow(io.TeeReader(printed, file), out), drain(printed))
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	state := cmd.ProcessState
	total := event{Action: actionTotal, Elapsed: time.Since(began).Seconds(), CPU: (state.UserTime() + state.SystemTime()).Seconds(), When: &began}
	return state.ExitCode(), errors.Join(follow, json.NewEncoder(file).Encode(total))
}

// drain reads the rest of the output, so that the command can end after a write to the file failed.
func drain(printed io.Reader) error {
	_, err := io.Copy(io.Discard, printed)
	return err
}

// follow prints the result of each package, and all output of each failed test.
func follow(lines io.Reader, out io.Writer) error {
	reader := bufio.NewReader(lines)
	said := map[[2]string]string{}
	for {
		line, err := reader.ReadBytes('\n')
		if e, ok := parse(line); ok {
			buffer(e, said, out)
		} else if len(line) > 0 {
			fmt.Fprintf(out, "%s", line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// buffer keeps the output of a test or package until its result is known.
func buffer(e event, said map[[2]string]string, out io.Writer) {
	name := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		said[name] += e.Output
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "fail":
		fmt.Fprint(out, said[name])
		delete(said, name)
	case "pass", "skip":
		delete(said, name)
	}
	if e.Test == "" && (e.Action == "pass" || e.Action == "fail") {
		fmt.Fprintf(out, "%s %s %.1f s\n", e.Action, e.Package, e.Elapsed)
	}
}
