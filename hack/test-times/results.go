package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// event is a line of `go test -json`, or the last line of a run.
type event struct {
	Action  string
	Package string  `json:",omitempty"`
	Test    string  `json:",omitempty"`
	Output  string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"`
	// Only in the last line, which has the action actionTotal, in seconds.
	CPU  float64    `json:",omitempty"`
	When *time.Time `json:",omitempty"`
}

// actionTotal is our own action; the go command has no such one.
const actionTotal = "test-times"

// row is one line of the table. A row without a test is a package.
type row struct {
	pkg, test    string
	wall         float64
	cpu, daemons float64 // only of packages
	measured     bool    // CPU seconds are known
}

// results are the times of one run.
type results struct {
	rows  []row
	total event
	cpus  map[string]row // of packages
}

// read reads the lines of a run. It also accepts a file of plain `go test -json`, which has no CPU seconds.
func read(lines io.Reader) (*results, error) {
	r := &results{cpus: map[string]row{}}
	reader := bufio.NewReader(lines)
	for {
		line, err := reader.ReadBytes('\n')
		r.add(line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(r.rows) == 0 {
		return nil, errors.New("it holds no results of go test -json")
	}
	for i := range r.rows {
		if x := &r.rows[i]; x.test == "" {
			cpu := r.cpus[x.pkg]
			x.cpu, x.daemons, x.measured = cpu.cpu, cpu.daemons, cpu.measured
		}
	}
	return r, nil
}

func (r *results) add(line []byte) {
	e, ok := parse(line)
	if !ok {
		return
	}
	switch e.Action {
	case actionTotal:
		r.total = e
	case "output":
		var cpu row
		if n, _ := fmt.Sscanf(e.Output, cpuLine, &cpu.cpu, &cpu.daemons); n == 2 {
			cpu.measured = true
			r.cpus[e.Package] = cpu
		}
	case "pass", "fail":
		if !strings.Contains(e.Test, "/") {
			r.rows = append(r.rows, row{pkg: e.Package, test: e.Test, wall: e.Elapsed})
		}
	}
}

// parse reads one line. It skips lines that are no event, such as the output of make.
func parse(line []byte) (e event, ok bool) {
	if !bytes.HasPrefix(line, []byte("{")) {
		return e, false
	}
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Action != ""
}
