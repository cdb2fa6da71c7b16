package fencing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-menagerie/menagerie/zksync"
)

// Object is an object of S3, or of another store with If-Match. It has the token in its body: the ETag is computed from
// the body, so it changes with each holder.
type Object struct {
	HTTP *http.Client // it signs the requests
	URL  string
}

type body struct {
	Token  zksync.Token
	Pieces int
}

// Claim implements Store.
func (o Object) Claim(ctx context.Context, l *zksync.Lease) (pieces int, err error) {
	err = o.change(ctx, l, func(b *body) { pieces = b.Pieces })
	return pieces, err
}

// Write implements Store.
func (o Object) Write(ctx context.Context, l *zksync.Lease, pieces int) error {
	return o.change(ctx, l, func(b *body) { b.Pieces = pieces })
}

// change reads the object, compares the tokens, and replaces the object if it is still the one that was read.
func (o Object) change(ctx context.Context, l *zksync.Lease, edit func(*body)) error {
	for {
		old, tag, err := o.get(ctx)
		if err != nil {
			return err
		}
		if l.Token().Compare(old.Token) < 0 {
			return refused(l)
		}
		old.Token = l.Token()
		edit(&old)
		if done, err := o.put(ctx, old, tag); done || err != nil {
			return err
		}
	}
}

func (o Object) get(ctx context.Context) (b body, tag string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL, nil)
	if err != nil {
		return b, "", err
	}
	resp, err := o.HTTP.Do(req)
	if err != nil {
		return b, "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return b, resp.Header.Get("ETag"), json.NewDecoder(resp.Body).Decode(&b)
	case http.StatusNotFound:
		return b, "", nil
	}
	return b, "", fmt.Errorf("GET %s: %s", o.URL, resp.Status)
}

// put reports whether the object was still the one with that tag, which is "" for none.
func (o Object) put(ctx context.Context, b body, tag string) (done bool, err error) {
	data, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, o.URL, bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	if tag == "" {
		req.Header.Set("If-None-Match", "*")
	} else {
		req.Header.Set("If-Match", tag)
	}
	resp, err := o.HTTP.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusPreconditionFailed, http.StatusConflict, http.StatusNotFound:
		return false, nil // another write came between: the next GET shows whose
	}
	return false, fmt.Errorf("PUT %s: %s", o.URL, resp.Status)
}
