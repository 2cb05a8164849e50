// Package mistyped suggests the word that a user perhaps meant. Both programs use it for words that users type.
package mistyped
