// Uses client-go as a controller does, against the server of the kubeconfig that the first argument names. The second names
// what is to be shown. It ends with 0 if everything was as client-go's users expect; otherwise it says what was not.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// No step takes longer on a machine that is merely busy.
const patience = 60 * time.Second

// scene is what every part gets: a client and a namespace of its own.
type scene struct {
	ctx       context.Context
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	said      *bufio.Reader
}

func main() {
	parts := map[string]func(*scene){
		"objects":  objects,
		"lists":    lists,
		"caches":   caches,
		"election": election,
		"events":   events,
		"metadata": metadata,
	}
	part, known := parts[os.Args[2]]
	if !known {
		fail("there is no part %q", os.Args[2])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	config.QPS, config.Burst = 1000, 1000
	// Typed clients write protobuf unless they are told not to.
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	client, err := kubernetes.NewForConfig(config)
	must(err)
	s := &scene{ctx: ctx, config: config, client: client, namespace: os.Args[2], said: bufio.NewReader(os.Stdin)}
	s.createNamespace()
	part(s)
	fmt.Println("done")
}

// ask has whoever started this do something to the server, and waits until it is done.
func (s *scene) ask(what string) {
	fmt.Println(what)
	_, err := s.said.ReadString('\n')
	must(err)
}

func (s *scene) eventually(what string, condition func() bool) {
	err := wait.PollUntilContextTimeout(s.ctx, 10*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		fail("%s: still not after %v", what, patience)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, what string, arguments ...any) {
	if !holds {
		fail(what, arguments...)
	}
}

func fail(what string, arguments ...any) {
	panic(fmt.Sprintf(what, arguments...))
}
