// The configuration of the coordinator: the settings of its modules from environment variables, and its limits from a file.
import { AUDIT_SETTINGS, type AuditSettings } from '../audit/settings.ts'
import { ConfigError, readSettings } from '../base/define-settings.ts'
import { type Limits, readLimits } from '../base/limits.ts'
import { BASE_SETTINGS, type BaseSettings } from '../base/settings.ts'
import { BILLING_SETTINGS, type BillingSettings } from '../billing/settings.ts'
import { BOX_SETTINGS, type BoxSettings } from '../boxes/settings.ts'
import { DATABASE_SETTINGS, type DatabaseSettings } from '../db/settings.ts'
import { FEDERATION_SETTINGS, type FederationSettings } from '../federation/settings.ts'
import { HISTORY_SETTINGS, type HistorySettings } from '../history/settings.ts'
import { HTTP_SETTINGS, type HttpSettings } from '../http/settings.ts'
import { IDENTITY_SETTINGS, type IdentitySettings } from '../identity/settings.ts'
import { IMAGE_SETTINGS, type ImageSettings } from '../images/settings.ts'
import { MCP_SETTINGS, type McpSettings } from '../mcp/settings.ts'
import { PORT_SHARE_SETTINGS, type PortShareSettings } from '../port-shares/settings.ts'
import { PROVIDER_SETTINGS, type ProviderSettings } from '../providers/settings.ts'
import { REPLICA_SETTINGS, type ReplicaSettings } from '../replicas/settings.ts'
import { SECRET_SETTINGS, type SecretSettings } from '../secrets/settings.ts'
import { WARM_MACHINE_SETTINGS, type WarmMachineSettings } from '../warm-machines/settings.ts'
import { isTracingRequested } from './telemetry/is-tracing-requested.ts'
import { TELEMETRY_SETTINGS, type TelemetrySettings } from './telemetry/settings.ts'

/** In the order of docs/configuration.md. */
export const SETTINGS = [
  BASE_SETTINGS,
  DATABASE_SETTINGS,
  HTTP_SETTINGS,
  REPLICA_SETTINGS,
  TELEMETRY_SETTINGS,
  IDENTITY_SETTINGS,
  AUDIT_SETTINGS,
  HISTORY_SETTINGS,
  PROVIDER_SETTINGS,
  WARM_MACHINE_SETTINGS,
  BOX_SETTINGS,
  IMAGE_SETTINGS,
  PORT_SHARE_SETTINGS,
  SECRET_SETTINGS,
  BILLING_SETTINGS,
  FEDERATION_SETTINGS,
  MCP_SETTINGS,
] as const

export type Config = BaseSettings &
  DatabaseSettings &
  HttpSettings &
  ReplicaSettings &
  TelemetrySettings &
  IdentitySettings &
  AuditSettings &
  HistorySettings &
  ProviderSettings &
  WarmMachineSettings &
  BoxSettings &
  ImageSettings &
  PortShareSettings &
  SecretSettings &
  BillingSettings &
  FederationSettings &
  McpSettings & {
    limits: Limits
    /** The OTEL_* variables request traces. */
    traces: boolean
  }

/** Throws ConfigError, which names all variables that are not valid. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = []
  const values = Object.assign({}, ...SETTINGS.map((group) => readSettings(group, env, problems)))
  if (values.replicaUrl && !(values.databaseUrl && values.publicUrl && values.agentUrl))
    problems.push(
      'BOXWOOD_REPLICA_URL needs BOXWOOD_DATABASE_URL, BOXWOOD_PUBLIC_URL and BOXWOOD_AGENT_URL, which lead to all replicas.',
    )
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  const limits = readLimits(values.limitsFile)
  return { ...values, limits, traces: isTracingRequested(env) } as Config
}
