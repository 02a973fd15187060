// Connects to the engine of a kind.
import { homedir } from 'node:os'
import type { EngineAddress } from '../engine-http/address.ts'
import { EngineHttp } from '../engine-http/client.ts'
import type { ProviderSettings } from '../settings.ts'
import { ENGINE_NAMES, type Engine, type EngineKind } from './engine.ts'
import { type EngineEndpoint, findEngine } from './find-engine.ts'
import { PodmanHttp } from './podman-http.ts'

export type EngineConnection = {
  http: EngineHttp
  /** The engine can mount directories of this machine. */
  isLocal: boolean
}

/** Throws PermanentProviderError for an address that cannot be used. An engine that is down is no error. */
export function connectToEngine(
  kind: EngineKind,
  config: Pick<ProviderSettings, 'dockerHost' | 'podmanHost'> & { previous: string | null },
  log: Engine['log'],
  env: NodeJS.ProcessEnv = process.env,
): EngineConnection {
  const { endpoint } = findEngine(kind, {
    configured: kind === 'docker' ? config.dockerHost : config.podmanHost,
    previous: config.previous,
    env,
    home: env.HOME ?? homedir(),
    uid: process.getuid?.() ?? 0,
  })
  const address = toAddress(endpoint)
  const http =
    kind === 'podman' ? new PodmanHttp(address, { log }) : new EngineHttp(ENGINE_NAMES[kind], address)
  return { http, isLocal: 'socketPath' in endpoint }
}

function toAddress(endpoint: EngineEndpoint): EngineAddress {
  if ('socketPath' in endpoint) return { kind: 'unix', path: endpoint.socketPath }
  const { port, tls } = endpoint
  const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host
  if (tls === null) return { kind: 'tcp', url: `http://${host}:${port}` }
  const { ca, cert, key, isVerified } = tls
  return {
    kind: 'tcp',
    url: `https://${host}:${port}`,
    tls: {
      ...(ca !== null && { ca }),
      ...(cert !== null && { cert }),
      ...(key !== null && { key }),
      rejectUnauthorized: isVerified,
    },
  }
}
