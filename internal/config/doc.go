// Package config is the recorder's configuration: flags, environment and file, in that order of precedence.
//
// It guarantees that a key which is not known, a value which cannot be read and a pattern which cannot match are
// errors that name where they stand, before anything is contacted. It holds no global state: each Load uses a viper
// of its own. Passwords leave it only through Masked.
package config
