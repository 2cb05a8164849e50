package tasks_test

import "strings"

// A task is a question to the record of the scene.
type task struct {
	number string
	asks   string
	// One of these answers it. Names in braces stand for instants and the like: see landmarks.
	replay  string // arguments, without quotes: no argument has a blank
	kubectl string // arguments of kubectl, which knows replay as a plugin
	sql     string
	// elsewhere names what else answers it, and why no question to the recording does.
	elsewhere string

	// want are parts of the answer, in this order. A blank stands for any number of them.
	want []string
	// never are parts that the answer must not have.
	never []string
	// most is how many lines the answer has at most. Zero: any number.
	most int
	// code is the exit code. The exit code 1 of a diff says that something is different.
	code int
}

// arguments are those of a command.
func arguments(command string, landmarks *strings.Replacer) []string {
	var all []string
	for _, argument := range strings.Fields(command) {
		all = append(all, landmarks.Replace(argument))
	}
	return all
}

// how is the kind of the answer, for the table.
func (t task) how() string {
	switch {
	case t.replay != "":
		return "replay " + t.replay
	case t.kubectl != "":
		return "kubectl " + t.kubectl
	case t.sql != "":
		return "SQL"
	default:
		return "-- " + t.elsewhere
	}
}
