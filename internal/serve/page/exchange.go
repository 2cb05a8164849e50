package page

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/jsonbody"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// Paths of codes.
const (
	codePath     = "/code"
	exchangePath = codePath + "/v1/exchange" // on the page's listener: exchanges a code for a token
	// NewPath, on the API's listener, makes a new code.
	NewPath = codePath + "/v1/new"
	// AwaitPath, on the API's listener, reports whether a code was used. It answers late, as a watch does.
	AwaitPath = codePath + "/v1/await"
)

// maxBody is larger than any request about a code.
const maxBody = 4 << 10

// A Code is the body of requests and answers about a code.
type Code struct {
	Code string `json:"code,omitempty"`
	Page string `json:"page,omitempty"` // the URL of the page; only with a new code
	Used bool   `json:"used,omitempty"`
}

// An access is the answer to an exchange.
type access struct {
	Token string `json:"token"`
}

// ForLinks makes the API's listener give codes to clients that have its token. page is the URL of the page. next answers
// other requests.
func (c *Codes) ForLinks(page string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case NewPath:
			answer(w, r, func(*Code) (any, error) { return Code{Code: c.New(), Page: page}, nil })
		case AwaitPath:
			answer(w, r, func(asked *Code) (any, error) {
				used, err := c.Await(r.Context(), asked.Code)
				return Code{Used: used}, err
			})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// exchange answers a client that has a code.
func (c *Codes) exchange(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(asked *Code) (any, error) {
		token, err := c.Exchange(asked.Code)
		return access{Token: token}, err
	})
}

// answer reads the body of a POST, and writes the result of to.
func answer(w http.ResponseWriter, r *http.Request, to func(*Code) (any, error)) {
	asked := &Code{}
	err := read(w, r, asked)
	var value any
	if err == nil {
		value, err = to(asked)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, value)
}

// read treats a missing body as an empty object, because a request for a new code needs none.
func read(w http.ResponseWriter, r *http.Request, asked *Code) error {
	if r.Method != http.MethodPost {
		return jsonbody.NotAllowed(w, r, schema.GroupResource{}, http.MethodPost)
	}
	if r.ContentLength == 0 {
		return nil
	}
	return jsonbody.Read(w, r, maxBody, `{"code": "…"}`, asked)
}
