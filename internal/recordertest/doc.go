// Package recordertest runs the shipped programs in tests of whole systems, and reads their logs and metrics.
//
//	func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }
//
//	func TestSomething(t *testing.T) {
//		p := recordertest.Start(t, "--kubeconfig", …, "--database", …)
//		p.AwaitReady(t)
//		…
//		p.Terminate(t)
//	}
//
// # What it guarantees
//
//   - make test builds the programs once and names their folder in KUBEREWIND_TEST_PROGRAMS. If that is unset, each package builds them from
//     the sources under test.
//   - A process that Start started ends with its test at the latest. On Linux it also ends with the process of the tests, however that ends.
//     If the test fails, Start logs the log of the process.
//
// # Goroutines
//
// One goroutine for each process reads its log and waits for its end. It ends with the process.
package recordertest
