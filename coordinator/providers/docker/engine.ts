// An engine with the Docker Engine API: Docker or Podman.
import type { Logger } from 'pino'
import type { EngineHttp } from '../engine-http/client.ts'

export type EngineKind = 'docker' | 'podman'

export type Engine = {
  kind: EngineKind
  http: EngineHttp
  /** Identifies this coordinator in the labels of what it creates. */
  deploymentId: string
  log: Pick<Logger, 'debug' | 'info' | 'warn'>
}

export const ENGINE_NAMES = { docker: 'Docker', podman: 'Podman' } as const satisfies Record<
  EngineKind,
  string
>
