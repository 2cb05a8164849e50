package scene

import "strings"

const shop = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {color: blue, limit: "10"}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: shop}
stringData: {password: correct-horse-battery-staple}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {team: shop}}
spec:
  replicas: 3
  progressDeadlineSeconds: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "registry.example/web:v1"}]
`

const checkout = `apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: checkout}}
  template:
    metadata: {labels: {app: checkout}}
    spec:
      containers: [{name: checkout, image: "registry.example/checkout:1.0"}]
`

const ledger = `apiVersion: apps/v1
kind: Deployment
metadata: {name: ledger, namespace: billing, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ledger}}
  template:
    metadata: {labels: {app: ledger}}
    spec:
      containers: [{name: ledger, image: "registry.example/ledger:1.0"}]
`

const ledgerUpgrade = `apiVersion: apps/v1
kind: Deployment
metadata: {name: ledger, namespace: billing}
spec: {replicas: 4}
`

const report = `apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {max: "10"}
---
apiVersion: v1
kind: Pod
metadata: {name: report}
spec:
  terminationGracePeriodSeconds: 1
  nodeName: node-000
  containers: [{name: report, image: "registry.example/report:1"}]
`

const killed = `apiVersion: v1
kind: Pod
metadata: {name: report, namespace: billing}
status:
  containerStatuses:
  - name: report
    image: registry.example/report:1
    imageID: ""
    ready: true
    restartCount: 1
    lastState: {terminated: {exitCode: 137, reason: OOMKilled}}
    state: {running: {}}
`

const old = `apiVersion: v1
kind: ConfigMap
metadata: {name: old}
data: {since: "2019"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: old}
spec:
  replicas: 1
  selector: {matchLabels: {app: old}}
  template:
    metadata: {labels: {app: old}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: old, image: "registry.example/old:1"}]
`

const migrate = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {outcome: fails}}
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: "registry.example/migrate:1"}]
`

const scratch = `apiVersion: apps/v1
kind: Deployment
metadata: {name: scratch}
spec:
  replicas: 1
  selector: {matchLabels: {app: scratch}}
  template:
    metadata: {labels: {app: scratch}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: "registry.example/scratch:1"}]
`

const certificate = `apiVersion: example.com/v1
kind: Certificate
metadata: {name: web}
spec: {issuer: letsencrypt, ready: "yes"}
`

// certificates returns a CustomResourceDefinition that prints one column.
func certificates(column string) string {
	path := map[string]string{"Ready": ".spec.ready", "Issuer": ".spec.issuer"}[column]
	return strings.NewReplacer("COLUMN", column, "PATH", path).Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: certificates, singular: certificate, kind: Certificate, shortNames: [cert]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: COLUMN, type: string, jsonPath: PATH}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {issuer: {type: string}, ready: {type: string}}}
`)
}
