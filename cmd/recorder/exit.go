package main

import (
	"errors"

	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// The help documents these exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEnvironment = 3
	exitFenced      = 4
)

func exitCode(err error) int {
	var usage usageError
	var environment *recorder.EnvironmentError
	var foreign *cluster.ForeignClusterError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, postgres.ErrFenced), errors.Is(err, postgres.ErrSetBack), errors.Is(err, election.ErrLost):
		return exitFenced
	case errors.As(err, &environment), errors.As(err, &foreign):
		return exitEnvironment
	default:
		return exitFailed
	}
}
