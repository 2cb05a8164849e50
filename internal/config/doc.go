// Package config is the recorder's configuration: flags, environment and file, in that order of precedence.
//
// An unknown key, a value that cannot be parsed, and a pattern that cannot match are errors that name their place. Load returns
// them; it contacts no server. The package holds no global state: each Load makes its own viper. Masked returns a configuration
// whose passwords are masked, for output.
package config
