package badinput_test

import "testing"

// misconfigured are mistakes in the configuration, by flag, environment and file.
var misconfigured = map[string]struct {
	args, env []string
	file      string
	words     []string
}{
	"an unknown flag":                {args: []string{"--bach-rows=5"}, words: []string{"unknown flag: --bach-rows"}},
	"an unknown variable":            {env: []string{"RECORDER_BACH_ROWS=5"}, words: []string{"RECORDER_BACH_ROWS", "names no setting", "recorder config --help"}},
	"an unknown key":                 {file: "batch-rows: 5\nbach-rows: 5\n", words: []string{"recorder.yaml: bach-rows names no setting", "recorder config --help"}},
	"an unknown command":             {args: []string{"rekord"}, words: []string{"rekord"}},
	"an argument too many":           {args: []string{"run", "prod"}, words: []string{"prod"}},
	"a bad duration as a flag":       {args: []string{"--linger=soon"}, words: []string{"--linger", "soon"}},
	"a bad duration as a variable":   {env: []string{"RECORDER_DRAIN_TIMEOUT=soon"}, words: []string{"drain-timeout", "soon"}},
	"a bad duration in the file":     {file: "drain-timeout: soon\n", words: []string{"drain-timeout", "soon", "recorder.yaml"}},
	"a duration without unit":        {file: "drain-timeout: 25\n", words: []string{"drain-timeout", "25", "recorder.yaml"}},
	"a duration variable, no unit":   {env: []string{"RECORDER_DRAIN_TIMEOUT=25"}, words: []string{"drain-timeout", "25"}},
	"a negative duration":            {args: []string{"--linger=-1s"}, words: []string{"linger", "-1s", "negative"}},
	"a bad pattern":                  {args: []string{"--exclude=pods["}, words: []string{"exclude", "pods["}},
	"an empty rule":                  {args: []string{"--include=pods", "--include="}, words: []string{"include", "resource[.group]"}},
	"a bad selector":                 {args: []string{"--include=pods?app in ("}, words: []string{"include", "pods?app in (", "label selector"}},
	"a bad selector in the file":     {file: "exclude: ['pods?a==b==c']\n", words: []string{"exclude", "a==b==c", "recorder.yaml"}},
	"rules that are no list":         {file: "exclude: {pods: true}\n", words: []string{"exclude", "recorder.yaml"}},
	"a path to redact without slash": {args: []string{"--redact=secrets"}, words: []string{"redact", "secrets", "resource[.group]:/path"}},
	"a bad pointer to redact":        {args: []string{"--redact=configmaps:/data/~7"}, words: []string{"redact", "~7"}},
	"a bad quantity":                 {args: []string{"--queue-size=lots"}, words: []string{"queue-size", "lots", "256Mi"}},
	"a quantity too small":           {env: []string{"RECORDER_QUEUE_SIZE=12"}, words: []string{"queue-size", "12", "1Mi"}},
	"no rows":                        {file: "batch-rows: 0\n", words: []string{"batch-rows", "0", "minimum"}},
	"rows that are no number":        {file: "batch-rows: many\n", words: []string{"batch-rows", "recorder.yaml"}},
	"a bad level":                    {args: []string{"--log-level=loud"}, words: []string{"log-level", "loud", "debug, info, warn, error"}},
	"a bad format":                   {env: []string{"RECORDER_LOG_FORMAT=xml"}, words: []string{"log-format", "xml", "text", "json"}},
	"a bad choice":                   {args: []string{"--secret-values=hide"}, words: []string{"secret-values", "hide", "hash", "record"}},
	"a file that is not there":       {args: []string{"--config=/nowhere/recorder.yaml"}, words: []string{"/nowhere/recorder.yaml", "does not exist"}},
	"a file that is no YAML":         {file: "linger: [\n", words: []string{"recorder.yaml", "cannot be read"}},
	"several at once":                {args: []string{"--batch-rows=0", "--log-level=loud", "--exclude=["}, words: []string{"batch-rows", "log-level", "exclude"}},
}

func TestAMistakeInTheConfigurationIsNamedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	for name, mistake := range misconfigured {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := invocation{args: mistake.args, env: mistake.env}
			if mistake.file != "" {
				i.args = append(i.args, "--config="+writeFile(t, "recorder.yaml", mistake.file))
			}
			recorder.refuses(t, i, exitUsage, mistake.words...)
		})
	}
}
