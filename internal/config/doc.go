// Package config is the recorder's configuration: flags, environment and file, in that order of precedence.
//
// An unknown key, a value that cannot be read, and a pattern that cannot match are errors that name their place. Load returns
// them before anything is contacted. The package holds no global state: each Load uses a viper of its own. Passwords leave it
// only through Masked.
package config
