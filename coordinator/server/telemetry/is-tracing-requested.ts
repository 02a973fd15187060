// Whether the standard OTEL_* variables request traces. Without such a variable, OpenTelemetry is not loaded.

type Environment = Readonly<Record<string, string | undefined>>

export function isTracingRequested(env: Environment): boolean {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true') return false
  const exporter = env.OTEL_TRACES_EXPORTER?.trim()
  if (exporter) return !exporter.split(',').some((name) => name.trim() === 'none')
  return Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT)
}
