{{- define "posology.name" -}}
{{- if contains "posology" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-posology" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "posology.selector" -}}
app.kubernetes.io/name: posology
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "posology.labels" -}}
{{ include "posology.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "posology.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "posology.redis.host" -}}
{{- if .Values.redis.enabled }}{{ include "posology.name" . }}-redis{{ else }}{{ required "redis.host is needed without redis.enabled" .Values.redis.host }}{{ end }}
{{- end }}

{{- define "posology.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* The settings of a component: those that files/environment.yaml lists for it, and Redis's address. */}}
{{- define "posology.environment" -}}
{{- $root := .root }}
{{- $own := dict "POSOLOGY_CACHE" "/cache" "POSOLOGY_MEMORY" "/memory/memory.sqlite" }}
{{- $_ := set $own "POSOLOGY_INDEX" (ternary "/index" $root.Values.index.url (ne $root.Values.index.claim "")) }}
{{- with (ternary "/uploads" $root.Values.uploads.url (ne $root.Values.uploads.claim "")) }}{{ $_ := set $own "POSOLOGY_UPLOADS" . }}{{ end }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {{ toJson $root.Values.redis.passwordSecret }}}
- name: POSOLOGY_REDIS_URL
  value: {{ printf "%s://:$(REDIS_PASSWORD)@%s:%v/%v" (ternary "rediss" "redis" $root.Values.redis.tls) (include "posology.redis.host" $root) $root.Values.redis.port $root.Values.redis.database }}
{{- range $name := index ($root.Files.Get "files/environment.yaml" | fromYaml) .component }}
{{- if hasKey $root.Values.secrets $name }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {{ toJson (get $root.Values.secrets $name) }}}
{{- else if hasKey $root.Values.settings $name }}
- name: {{ $name }}
  value: {{ get $root.Values.settings $name | quote }}
{{- else if hasKey $own $name }}
- name: {{ $name }}
  value: {{ get $own $name | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A deployment. Takes root, component, replicas (nil: scaled by KEDA), command, resources, grace and writes (the index). */}}
{{- define "posology.deployment" -}}
{{- $root := .root }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "posology.name" $root }}-{{ .component }}
  labels:
    {{- include "posology.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if ne .replicas nil }}
  replicas: {{ .replicas }}
  {{- end }}
  {{- if eq .component "ingest-uploads" }}
  # one process writes the index
  strategy: {type: Recreate}
  {{- end }}
  selector:
    matchLabels:
      {{- include "posology.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "posology.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
    spec:
      serviceAccountName: {{ include "posology.name" $root }}
      automountServiceAccountToken: false
      # unfinished work is requeued within POSOLOGY_SHUTDOWN_GRACE
      terminationGracePeriodSeconds: {{ .grace }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 999
        runAsGroup: 999
        fsGroup: 999
        seccompProfile: {type: RuntimeDefault}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{ toJson . }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "posology.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: {{ toJson .command }}
          env:
            {{- include "posology.environment" (dict "root" $root "component" .component) | nindent 12 }}
          securityContext:
            {{- include "posology.container.security" $root | nindent 12 }}
          resources: {{ toJson .resources }}
          {{- if eq .component "api" }}
          ports: [{name: http, containerPort: 8000}]
          startupProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 5, failureThreshold: 60}
          # /readyz would take the API away from all while no worker lives
          readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 5, timeoutSeconds: 5}
          livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
          {{- else if hasPrefix "worker-" .component }}
          # models load and the index opens first
          startupProbe: {exec: {command: [python, -m, workers.health]}, periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 60}
          readinessProbe: {exec: {command: [python, -m, workers.health]}, periodSeconds: 30, timeoutSeconds: 10}
          # it fails without Redis, too: an outage of ten minutes is not the worker's fault
          livenessProbe: {exec: {command: [python, -m, workers.health]}, periodSeconds: 60, timeoutSeconds: 10, failureThreshold: 10}
          {{- end }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            - {name: cache, mountPath: /cache}
            - {name: memory, mountPath: /memory}
            {{- if and $root.Values.index.claim (ne .component "worker-calls") }}
            - {name: index, mountPath: /index, readOnly: {{ not .writes }}}
            {{- end }}
            {{- if $root.Values.data }}
            - {name: data, mountPath: /data, readOnly: true}
            {{- end }}
            {{- if and $root.Values.uploads.claim (has .component (list "api" "worker-jobs" "ingest-uploads")) }}
            - {name: uploads, mountPath: /uploads}
            {{- end }}
      volumes:
        # batches arrive in /tmp, and files that go to or come from a bucket
        - {name: tmp, emptyDir: {sizeLimit: {{ ternary "8Gi" "1Gi" (and (ne $root.Values.uploads.url "") (has .component (list "api" "ingest-uploads"))) }}}}
        - {name: cache, emptyDir: {sizeLimit: 2Gi}}
        - {name: memory, emptyDir: {sizeLimit: 2Gi}}
        {{- if and $root.Values.index.claim (ne .component "worker-calls") }}
        - {name: index, persistentVolumeClaim: {claimName: {{ $root.Values.index.claim }}}}
        {{- end }}
        {{- with $root.Values.data }}
        - {{ merge (dict "name" "data") . | toJson }}
        {{- end }}
        {{- if and $root.Values.uploads.claim (has .component (list "api" "worker-jobs" "ingest-uploads")) }}
        - {name: uploads, persistentVolumeClaim: {claimName: {{ $root.Values.uploads.claim }}}}
        {{- end }}
      {{- with $root.Values.nodeSelector }}
      nodeSelector: {{ toJson . }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations: {{ toJson . }}
      {{- end }}
      {{- with $root.Values.affinity }}
      affinity: {{ toJson . }}
      {{- end }}
{{- end }}
