// Uses client-go as a controller does. The first argument is the path of a kubeconfig, the second the name of a part.
// The exit code is 0 if all checks pass; otherwise the program panics with the failed check.
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

// timeout bounds every wait, with a margin for a busy machine.
const timeout = 60 * time.Second

// fixture is the argument of every part: a client and a namespace of its own.
type fixture struct {
	ctx       context.Context
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	input     *bufio.Reader
}

func main() {
	parts := map[string]func(*fixture){
		"objects":  objects,
		"lists":    lists,
		"caches":   caches,
		"election": election,
		"events":   events,
		"metadata": metadata,
		"foos":     foos,
	}
	part, known := parts[os.Args[2]]
	if !known {
		fail("unknown part %q", os.Args[2])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*timeout)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	config.QPS, config.Burst = 1000, 1000
	client, err := kubernetes.NewForConfig(config)
	must(err)
	s := &fixture{ctx: ctx, config: config, client: client, namespace: os.Args[2], input: bufio.NewReader(os.Stdin)}
	s.createNamespace()
	part(s)
	fmt.Println("done")
}

// disrupt requests a disruption of the server from the test, and waits until it is done.
func (s *fixture) disrupt(what string) {
	fmt.Println(what)
	_, err := s.input.ReadString('\n')
	must(err)
}

func (s *fixture) eventually(what string, condition func() bool) {
	err := wait.PollUntilContextTimeout(s.ctx, 10*time.Millisecond, timeout, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		fail("%s: not within %v", what, timeout)
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
