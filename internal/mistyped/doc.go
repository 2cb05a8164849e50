// Package mistyped says which word was perhaps meant by one that was mistyped. Both programs use it for what their users type.
package mistyped
