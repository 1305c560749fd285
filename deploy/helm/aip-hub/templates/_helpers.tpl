{{/* The name of everything in this release. */}}
{{- define "aip-hub.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What the pods are found by; never changes. */}}
{{- define "aip-hub.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "aip-hub.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "aip-hub.selector" . }}
{{- end }}

{{- define "aip-hub.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}

{{- define "aip-hub.publicUrl" -}}
{{- if .Values.hub.publicUrl }}{{ .Values.hub.publicUrl }}
{{- else if .Values.ingress.enabled }}https://{{ required "ingress.host: the host of the public URL" .Values.ingress.host }}
{{- else }}https://{{ .Values.hub.domain }}{{ end }}
{{- end }}

{{/* What every process of the hub, the migration included, is told by its environment. */}}
{{- define "aip-hub.environment" -}}
{{- $secret := required "secrets.existingSecret: a Secret with the hub's key and the engines' addresses; values.yaml says how to make it" .Values.secrets.existingSecret -}}
- name: AIP_HUB__HUB__DOMAIN
  value: {{ required "hub.domain: the domain of your agents' handles" .Values.hub.domain | quote }}
- name: AIP_HUB__HUB__PROCESS_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: AIP_HUB__HUB__DATA_DIR
  value: /data/hub
- name: AIP_HUB__HUB__KEY_FILE
  value: /run/aip-hub/hub.key
- name: AIP_HUB__ENGINES__REGISTRY_URL
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ .Values.secrets.keys.registryUrl }} } }
- name: AIP_HUB__ENGINES__MAILBOXES_URL
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ .Values.secrets.keys.mailboxesUrl }} } }
- name: AIP_HUB__ENGINES__SHARED_URL
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ .Values.secrets.keys.sharedUrl }} } }
{{- if .Values.secrets.keys.natsCredentials }}
- name: AIP_HUB__NATS__CREDENTIALS_FILE
  value: /run/aip-hub/nats.creds
{{- end }}
{{- end }}

{{/* A mounted Secret belongs to root and is readable by the pod's group; the hub wants its key for itself alone. */}}
{{- define "aip-hub.keyContainer" -}}
- name: key
  image: {{ include "aip-hub.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [sh, -euc, "install -m 0400 /run/secrets/aip-hub/* /run/aip-hub/"]
  securityContext:
    {{- include "aip-hub.containerSecurity" . | nindent 4 }}
  resources:
    requests: { cpu: 10m, memory: 16Mi }
    limits: { memory: 64Mi }
  volumeMounts:
    - { name: secrets, mountPath: /run/secrets/aip-hub, readOnly: true }
    - { name: key, mountPath: /run/aip-hub }
{{- end }}

{{- define "aip-hub.keyVolumes" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secrets.existingSecret }}
    items:
      - { key: {{ .Values.secrets.keys.hubKey }}, path: hub.key }
      {{- if .Values.secrets.keys.natsCredentials }}
      - { key: {{ .Values.secrets.keys.natsCredentials }}, path: nats.creds }
      {{- end }}
- name: key
  emptyDir: { medium: Memory, sizeLimit: 1Mi }
{{- end }}

{{- define "aip-hub.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "aip-hub.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
