// A server on loopback that speaks both of Google Cloud Storage's protocols, for tests.
//
// The store and its JSON protocol are fake-gcs-server's. Of the XML protocol, which delta-rs speaks, that server lacks what is here: puts,
// copies, moves, and listings from a key on. Each becomes calls of that server, so that all clients see one store and one set of
// conditions. A token is given to everybody.
package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

type entry struct {
	Key          string
	Generation   int64
	Size         int64
	LastModified string
	ETag         string
}

type listing struct {
	XMLName        xml.Name `xml:"ListBucketResult"`
	Name           string
	IsTruncated    bool
	Contents       []entry
	CommonPrefixes []struct{ Prefix string }
}

var moves sync.Mutex

type store struct {
	server  *fakestorage.Server
	json    http.Handler
	address string
}

func (s store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Host = s.address // a client may come through a gate
	bucket, name, isObject := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	isXML := bucket != "storage" && bucket != "upload" && bucket != "download" && bucket != "batch" && bucket != "_internal"
	source, target, isMove := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/storage/v1/b/"), "/moveTo/o/")
	switch {
	case isMove && r.Method == http.MethodPost:
		s.move(w, r, source, target)
	case bucket == "token":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "test-token", "expires_in": 3600, "token_type": "Bearer"}`)
	case isXML && isObject && r.Method == http.MethodPut:
		s.put(w, r, bucket, name)
	case isXML && !isObject && r.Method == http.MethodGet && query.Get("list-type") == "2":
		s.list(w, bucket, query)
	default:
		s.json.ServeHTTP(w, r)
	}
}

// put writes an object, or copies one that a header names, under the condition of another header.
func (s store) put(w http.ResponseWriter, r *http.Request, bucket, name string) {
	target := "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + url.QueryEscape(name)
	if source := r.Header.Get("X-Goog-Copy-Source"); source != "" {
		from, object, _ := strings.Cut(strings.TrimPrefix(source, "/"), "/")
		if plain, err := url.PathUnescape(object); err == nil {
			object = plain
		}
		target = "/storage/v1/b/" + from + "/o/" + url.PathEscape(object) + "/rewriteTo/b/" + bucket + "/o/" + url.PathEscape(name) + "?"
	}
	if generation := r.Header.Get("X-Goog-If-Generation-Match"); generation != "" {
		target += "&ifGenerationMatch=" + generation
	}
	answer := s.call(r.Host, http.MethodPost, target, r.Body)
	if answer.Code != http.StatusOK {
		http.Error(w, answer.Body.String(), answer.Code)
		return
	}
	if written, err := s.server.GetObject(bucket, name); err == nil {
		w.Header().Set("ETag", `"`+written.Etag+`"`)
		w.Header().Set("X-Goog-Generation", fmt.Sprint(written.Generation))
	}
}

// move gives an object another name at once, under the condition of the query; source is escaped: bucket/o/name.
func (s store) move(w http.ResponseWriter, r *http.Request, source, target string) {
	moves.Lock()
	defer moves.Unlock()
	bucket, escaped, _ := strings.Cut(source, "/o/")
	name, _ := url.PathUnescape(escaped)
	plain, _ := url.PathUnescape(target)
	found, err := s.server.GetObject(bucket, name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	path := "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + url.QueryEscape(plain)
	if generation := r.URL.Query().Get("ifGenerationMatch"); generation != "" {
		path += "&ifGenerationMatch=" + generation
	}
	answer := s.call(r.Host, http.MethodPost, path, bytes.NewReader(found.Content))
	if answer.Code == http.StatusOK {
		s.call(r.Host, http.MethodDelete, "/storage/v1/b/"+source, nil)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// call asks the server as a client of its JSON protocol would.
func (s store) call(host, method, path string, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, body)
	request.Host = host
	request.Header.Set("Content-Type", "application/octet-stream")
	answer := httptest.NewRecorder()
	s.json.ServeHTTP(answer, request)
	return answer
}

func (s store) list(w http.ResponseWriter, bucket string, query url.Values) {
	options := fakestorage.ListOptions{Prefix: query.Get("prefix"), Delimiter: query.Get("delimiter")}
	if after := query.Get("start-after"); after != "" {
		options.StartOffset = after + "\x00"
	}
	found, err := s.server.ListObjectsWithOptionsPaginated(bucket, options)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	result := listing{Name: bucket}
	for _, prefix := range found.Prefixes {
		result.CommonPrefixes = append(result.CommonPrefixes, struct{ Prefix string }{prefix})
	}
	for _, o := range found.Objects {
		modified := o.Updated.UTC().Format(time.RFC3339Nano)
		result.Contents = append(result.Contents, entry{o.Name, o.Generation, o.Size, modified, `"` + o.Etag + `"`})
	}
	text, err := xml.Marshal(result)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(w, xml.Header, string(text))
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	address := "http://" + listener.Addr().String()
	options := fakestorage.Options{NoListener: true, ExternalURL: address, PublicHost: listener.Addr().String()}
	server, err := fakestorage.NewServerWithOptions(options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Running on %s\n", address)
	log.Fatal(http.Serve(listener, store{server, server.HTTPHandler(), listener.Addr().String()}))
}
