// The same cache, fed by the same server: a load server that has 100,000 pods, and client-go's informer
// as a consumer of it. benches/src/bin/informer_peers is our consumer, and runs all consumers in turn;
// benches/peers/informer.sh builds and starts all.
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func([]string) error{
		"serve":   serve,
		"consume": consume,
		"parts":   parts,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: informer serve|consume|parts [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
