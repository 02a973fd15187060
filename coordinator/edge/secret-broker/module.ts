// The broker: sends the requests of boxes to the hosts of secrets, with the values that the boxes do not have (spec §2.8).

import type { SecretConnections } from '../../agents/tunnel/types.ts'
import type { Limits } from '../../base/limits.ts'
import { createAddressFilter } from '../../base/public-address.ts'
import { type Resolve, resolveWithDns, resolveWithSystem } from '../../base/resolve-name.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import type { SecretSettings } from '../../secrets/settings.ts'
import type { SecretBroker, WorkspaceAuthorities } from '../../secrets/types.ts'
import { BrokerServer } from './broker-server.ts'
import { createVettedLookup } from './vetted-lookup.ts'

/** Tests send the requests to a server of their own. */
export type SecretBrokerOverrides = {
  resolve?: Resolve
  upstreamPort?: number
  /** PEM, instead of the authorities of Node. */
  upstreamCa?: string
}

export type SecretBrokerModuleContext = ModuleBase & {
  config: SecretSettings & { limits: Limits }
  secretBroker: SecretBroker
  workspaceAuthorities: WorkspaceAuthorities
  agentConnections: { secretConnections: SecretConnections }
  overrides: { secretBroker?: SecretBrokerOverrides }
}

const HTTPS_PORT = 443

export function secretBrokerModule(context: SecretBrokerModuleContext) {
  const { config, log, clock, overrides, agentConnections } = context
  const { resolve, upstreamPort = HTTPS_PORT, upstreamCa } = overrides.secretBroker ?? {}
  // Private servers may be in /etc/hosts.
  const defaultResolve = config.secretsPrivate.length > 0 ? resolveWithSystem : resolveWithDns
  const server = new BrokerServer({
    broker: context.secretBroker,
    authorities: context.workspaceAuthorities,
    upstream: {
      lookup: createVettedLookup(resolve ?? defaultResolve, createAddressFilter(config.secretsPrivate)),
      port: upstreamPort,
      ca: upstreamCa,
    },
    log,
    clock,
    headersTimeoutMs: config.limits.headersTimeoutSeconds * 1000,
    idleTimeoutMs: config.limits.idleTimeoutSeconds * 1000,
  })
  agentConnections.secretConnections.setServer(server)
  return {
    metrics: server.metrics,
    beginStop: () => server.beginStop(),
    drain: () => server.drain(),
    close: { name: 'close the connections to hosts of secrets', run: () => server.close() },
  } satisfies Module
}
