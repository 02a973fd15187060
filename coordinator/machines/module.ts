// Enrolled machines: the tokens that enroll them, and the machines whose boxes have been deleted.

import type { Region } from '../../shared/tiers.ts'
import type { Admit } from '../admission/admit.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { HttpSettings } from '../http/settings.ts'
import { createMachines } from './machines.ts'
import { agentEnrollRoutes, machineRoutes } from './routes.ts'

export type MachinesModuleContext = ModuleBase & {
  config: Pick<HttpSettings, 'publicUrl'>
  admit: Admit
  providers: { defaultRegion: Region }
  agentBundles: {
    /** Builds in the background what the machine will download. */
    prepare(): void
  }
  /** See createClientLimiter. */
  overrides: { addressLimitFactor?: number }
}

export function machinesModule(context: MachinesModuleContext): Module {
  const { config, db, clock, admit, providers, agentBundles, overrides } = context
  const { addressLimitFactor } = overrides
  const machines = createMachines({
    db,
    clock,
    admit,
    defaultRegion: providers.defaultRegion,
    ...(addressLimitFactor !== undefined && { addressLimitFactor }),
  })
  return {
    routes: withTag(
      'Machines',
      machineRoutes({ machines, publicUrl: config.publicUrl, prepareBundles: agentBundles.prepare }),
    ),
    agentRoutes: agentEnrollRoutes({ machines }),
    schedules: {
      pruners: { enrollments: machines.enrollments.prune, deleted_machines: machines.pruneDeleted },
    },
    workspaceTables: [{ table: 'enrollments', key: 'id', isCredential: true }],
  }
}
