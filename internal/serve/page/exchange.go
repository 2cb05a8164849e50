package page

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// Paths of codes.
const (
	codePath     = "/code"
	exchangePath = codePath + "/v1/exchange" // of the page: a code for a token
	// NewPath is of the API's listener: a new code.
	NewPath = codePath + "/v1/new"
	// AwaitPath is of the API's listener: whether a code was used. It answers as a watch does, late.
	AwaitPath = codePath + "/v1/await"
)

// maxBody is more than any request about a code has.
const maxBody = 4 << 10

// A Code is what is said about a code, in requests and answers.
type Code struct {
	Code string `json:"code,omitempty"`
	Page string `json:"page,omitempty"` // the URL of the page, of a new code
	Used bool   `json:"used,omitempty"`
}

// An access is the answer to an exchange.
type access struct {
	Token string `json:"token"`
}

// ForLinks has the listener of the API give codes to whoever has its token. page is the URL of the page. Other requests go to next.
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

// exchange answers who has a code.
func (c *Codes) exchange(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(asked *Code) (any, error) {
		token, err := c.Exchange(asked.Code)
		return access{Token: token}, err
	})
}

// answer reads the body of a POST, and writes what is answered to it.
func answer(w http.ResponseWriter, r *http.Request, to func(*Code) (any, error)) {
	asked, err := read(w, r)
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

func read(w http.ResponseWriter, r *http.Request) (*Code, error) {
	if r.Method != http.MethodPost {
		return nil, notAllowed(w, r, http.MethodPost)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d bytes", maxBody))
	}
	asked := &Code{}
	if err == nil && len(body) > 0 {
		var faults []error
		faults, err = kjson.UnmarshalStrict(body, asked)
		err = errors.Join(err, errors.Join(faults...))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(`the body is not understood: write a JSON object such as {"code": "…"}: ` + err.Error())
	}
	return asked, nil
}

func notAllowed(w http.ResponseWriter, r *http.Request, allowed string) error {
	w.Header().Set("Allow", allowed)
	err := apierrors.NewMethodNotSupported(schema.GroupResource{}, strings.ToLower(r.Method))
	err.ErrStatus.Message = fmt.Sprintf("%.20s is not supported here, but %s", r.Method, allowed)
	return err
}
