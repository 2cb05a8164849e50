package when

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A slip is a form that users type and Parse does not accept, and the correct form.
var slips = []struct {
	typed *regexp.Regexp
	form  string
}{
	{regexp.MustCompile(`^(\d{4})[/.](\d{2})[/.](\d{2})(.*)$`), "$1-$2-$3$4"},
	{regexp.MustCompile(`^(\d{2})\.(\d{2})\.(\d{4})(.*)$`), "$3-$2-$1$4"},
	{regexp.MustCompile(`^(.*?)(\d{1,2})[.h](\d{2})$`), "$1$2:$3"},
	{regexp.MustCompile(`^(\d{2})(\d{2})$`), "$1:$2"},
	{regexp.MustCompile(`^-?(\d{1,3})$`), "${1}m"},
	{regexp.MustCompile(`^(\d{10})\d{3}$`), "$1"},
	{regexp.MustCompile(`^an? (hour|minute|day|week)( ago)?$`), "1 $1 ago"},
	{regexp.MustCompile(`^(?:the )?last (\d+ ?[a-z]+)$`), "$1 ago"},
	{regexp.MustCompile(`^(?:the )?last (hour|minute|day|week)$`), "1 $1 ago"},
	{regexp.MustCompile(`^(today|yesterday|\d{4}-\d{2}-\d{2})(?: at |, ?| +)(.+)$`), "$1 $2"},
	{regexp.MustCompile(`^(\S+) (today|yesterday|\d{4}-\d{2}-\d{2})$`), "$2 $1"},
	{regexp.MustCompile(`^(seq|rv)[ =:]*(\d+)$`), "$1:$2"},
	{regexp.MustCompile(`^\+(.+)$`), "$1"},
	{regexp.MustCompile(`^--?(.+?)(?: ago)?$`), "$1 ago"},
	{regexp.MustCompile(`^(.+)ago$`), "$1 ago"},
}

// monthForms are the forms of logs and calendars that name the month. A form without a year means the current year.
var monthForms = []string{
	time.UnixDate, time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, "Jan 2 15:04:05", "Jan 2 15:04", "Jan 2", "2 Jan 15:04", "2 Jan",
	"Jan 2 2006 15:04", "Jan 2 2006", "2 Jan 2006 15:04", "2 Jan 2006",
}

// corrected returns the form that the user perhaps meant and that Parse accepts; "" if there is none.
func (c Clock) corrected(text string) string {
	for _, tried := range []string{strings.ToLower(text), from12Hours(strings.ToLower(text)), strings.ToUpper(text)} {
		if _, err := c.read(tried); err == nil {
			return tried
		}
		for _, slip := range slips {
			better := slip.typed.ReplaceAllString(tried, slip.form)
			if _, err := c.read(better); err == nil {
				return better
			}
		}
	}
	for _, form := range monthForms {
		if t, err := time.ParseInLocation(form, text, c.Zone); err == nil {
			return c.ofThisYear(t).Format("2006-01-02 15:04:05")
		}
	}
	return ""
}

func (c Clock) ofThisYear(t time.Time) time.Time {
	if t.Year() == 0 {
		return t.AddDate(c.Now.In(c.Zone).Year(), 0, 0)
	}
	return t.In(c.Zone)
}

var halfDay = regexp.MustCompile(`(\d{1,2})(?::(\d{2}))? ?([ap])m\b`)

// from12Hours converts 6:45 pm to 18:45.
func from12Hours(text string) string {
	return halfDay.ReplaceAllStringFunc(text, func(found string) string {
		parts := halfDay.FindStringSubmatch(found)
		t, err := time.Parse("3:04pm", fmt.Sprintf("%s:%s%sm", parts[1], (parts[2] + "00")[:2], parts[3]))
		if err != nil {
			return found
		}
		return t.Format("15:04")
	})
}
