package measure

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// A Machine is where the figures come from.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memory"` // bytes
	System string `json:"system"`
}

func (m Machine) String() string {
	return fmt.Sprintf("%d × %s, %s GiB, %s", m.Cores, m.CPU, Number(float64(m.Memory)/(1<<30)), m.System)
}

// ThisMachine reads the facts about this machine. A fact that the system does not publish stays empty.
func ThisMachine() Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.System = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model
	}
	var kib int64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kib); err == nil {
		m.Memory = kib << 10
	}
	return m
}

// field gives the first value of a name in a file of "name : value" lines, "" if there is none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if before, after, found := strings.Cut(line, ":"); found && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return ""
}

// The file systems of Linux that are in memory, as statfs names them.
const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// inMemory reports whether a folder is known to be on no disk.
func inMemory(dir string) bool {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return false
	}
	return uint64(stat.Type) == tmpfs || uint64(stat.Type) == ramfs
}

// Versions are those of what this program was built with. The rivals add their own.
func Versions() map[string]string {
	versions := map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == "k8s.io/client-go" {
				versions["client-go"] = dependency.Version
			}
		}
	}
	return versions
}
