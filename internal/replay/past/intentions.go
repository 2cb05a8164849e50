package past

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/serve/jsonlines"
)

// Intentions is the file name for the writes that clients request. It is "" without --intentions.
type Intentions string

// AddFlag adds --intentions.
func (i *Intentions) AddFlag(flags *pflag.FlagSet) {
	flags.StringVar((*string)(i), "intentions", "", "file to which the server appends each write that a client requests, as a JSON line")
}

// Open opens the file for a server. The returned function closes it.
func (i Intentions) Open(api *apiserver.Options) (end func() error, err error) {
	if i == "" {
		return func() error { return nil }, nil
	}
	file, err := jsonlines.Open("file of intentions", string(i))
	if err != nil {
		return nil, err
	}
	api.Intentions = noting(file)
	return file.Close, nil
}

// noting returns a function that appends intentions to a file. While the file rejects earlier lines, the function rejects
// new ones, so that few lines are at risk.
func noting(file *jsonlines.File) func(apiserver.Intention) error {
	return func(i apiserver.Intention) error {
		if err := file.Ready(); err != nil {
			return err
		}
		return file.Append(i)
	}
}

// Fits returns an error if another server would answer: that server has its own file, or none.
func (i Intentions) Fits(e *env.Env, aim *Aim, runs bool) error {
	switch serve := e.Command + " serve --intentions FILE"; {
	case i == "":
	case runs:
		return errors.New("--intentions needs a server that this command starts, but a server of this database already runs, and does not write to that file. " +
			"End it, or start it as \"" + serve + "\" and omit the flag here")
	case aim.needsRunning():
		return errors.New("--intentions needs a server that this command starts, but a session needs a server that already runs: start \"" + serve + "\" in another terminal, and omit the flag here")
	}
	return nil
}
