// Package tasks_test asks the scene what an engineer on call and an auditor want to know. Each task is one command, whose answer is compared.
package tasks_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) { recordertest.Main(m, "replay", "recorder") }
