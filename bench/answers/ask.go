package answers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/internal/replay"
)

// replayChild is the part of this program that answers one question as replay does.
const replayChild = "replay"

// Children are the parts of a program that measures this.
func Children() measure.Children { return measure.Children{replayChild: answer} }

// errNoAnswer says that replay failed. It has said why on standard error.
var errNoAnswer = errors.New("replay failed")

// completesWithin is the deadline of a completion.
const completesWithin = 5 * time.Minute

func answer(ctx context.Context, in *json.Decoder, out io.Writer) error {
	var args []string
	if err := in.Decode(&args); err != nil {
		return err
	}
	if args[0] == completes { // Without a deadline, it gives up after two seconds.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, completesWithin)
		defer cancel()
	}
	code := replay.Execute(ctx, "replay", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: os.Stderr})
	if code != 0 {
		return fmt.Errorf("%w: exit code %d of %q", errNoAnswer, code, args)
	}
	return nil
}

// ask gives how long a question took, and what came: some lines, or the run ends with an error.
func ask(ctx context.Context, url string, args []string) (measure.Values, error) {
	cmd, err := measure.Command(ctx, replayChild, args)
	if err != nil {
		return nil, err
	}
	// The settings and the kubeconfig of the person who measures would choose what is shown.
	cmd.Env = append(cmd.Env, "REPLAY_DATABASE="+url, "XDG_CONFIG_HOME="+os.DevNull, "KUBECONFIG="+os.DevNull)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	first, lines, err := read(out, started)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("%w; it said:\n%s", err, &said)
	}
	end, used := time.Since(started), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	if args[0] == completes {
		lines-- // the last line is an instruction for the shell
	}
	if lines < 1 {
		return nil, fmt.Errorf("%w: %q printed nothing, and said:\n%s", errNoAnswer, args, &said)
	}
	return measure.Values{firstLine: millis(first), wholeAnswer: millis(end), processCPU: millis(used), printed: float64(lines)}, nil
}

// read reads lines, and says when the first one was whole.
func read(r io.Reader, started time.Time) (first time.Duration, lines int, err error) {
	for buffered := bufio.NewReader(r); ; {
		_, err := buffered.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // the line goes on
		case errors.Is(err, io.EOF):
			return first, lines, nil
		case err != nil:
			return first, lines, err
		default:
			if lines++; lines == 1 {
				first = time.Since(started)
			}
		}
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
