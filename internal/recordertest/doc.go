// Package recordertest runs the shipped programs in tests of whole systems, and reads what they record.
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
//   - The programs are built once for a run of make test, which names their folder in KUBEREWIND_TEST_PROGRAMS. If that is
//     unset, each package builds them from the sources under test.
//   - A process that Start started ends with its test at the latest. On Linux it also ends with the process of the tests,
//     however that ends. If the test fails, its log is shown.
//
// # Goroutines
//
// One for each process, which reads its log and reaps it; it has ended when the process has.
package recordertest
