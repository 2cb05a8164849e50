package verify_test

import (
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
