// Package version returns the version of this build.
package version

import "runtime/debug"

// version is the version that the linker sets.
var version string

// String returns the version that the linker set, else the version of the module, else the revision, else "dev".
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "dev"
}
