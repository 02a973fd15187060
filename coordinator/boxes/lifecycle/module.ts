// The lifecycle of boxes: the reconciler and its monitors.

import type { AgentConnections } from '../../agents/tunnel/agent-connections.ts'
import type { Module, ModuleBase, ModuleRegistry } from '../../http/module.ts'
import type { Peers } from '../../replicas/peers.ts'
import type { BoxSettings } from '../settings.ts'
import { createBoxCounts } from './box-counts.ts'
import { createLifecycle, type Lifecycle, type LifecycleOptions } from './lifecycle.ts'
import { prepareAtOwner } from './prepare-at-owner.ts'
import type { StepObserver } from './step-observer.ts'

/** This limit is higher than that of lifecycle.close(). */
const CLOSE_MS = 30_000

export type LifecycleModuleContext = ModuleBase & { config: BoxSettings } & Pick<
    LifecycleOptions,
    'boxNames' | 'providers' | 'tunnels' | 'ingest' | 'replica'
  > & {
    modules: Pick<ModuleRegistry, 'prepareBox'>
    imageDownloads: { ensure: NonNullable<LifecycleOptions['ensureImage']> }
    agentConnections: Pick<AgentConnections, 'restartAgent' | 'owner'>
    peers: Peers | null
    /** `agents` is not the public URL, which may be that of a proxy that has not started yet. */
    urls: { agents: string }
    observers: { steps?: StepObserver }
    overrides: { lifecycle?: Partial<LifecycleOptions> }
  }

export function lifecycleModule(context: LifecycleModuleContext) {
  const { config, db, clock, log, replica, providers, tunnels, ingest } = context
  const { urls, observers, overrides, modules, peers, agentConnections } = context
  const lifecycle: Lifecycle = createLifecycle({
    ...overrides.lifecycle,
    ...(context.boxNames && { boxNames: context.boxNames }),
    db,
    clock,
    log,
    replica,
    providers,
    tunnels,
    ingest,
    prepareBox: prepareAtOwner({ peers, tunnels, agentConnections, prepareBox: modules.prepareBox }),
    ensureImage: context.imageDownloads.ensure,
    restartAgent: (boxId) => agentConnections.restartAgent(boxId),
    coordinatorUrl: urls.agents,
    freezesBoxes: config.freezeMinutes > 0,
    observer: observers.steps,
  })
  return {
    services: { lifecycle },
    metrics: [createBoxCounts(lifecycle.countBoxes)],
    start: lifecycle.start,
    drain: lifecycle.close,
    close: { name: 'finish lifecycle steps', run: lifecycle.close, timeoutMs: CLOSE_MS },
  } satisfies Module
}
