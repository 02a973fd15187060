// The machines that wait for a box. A module before those that create boxes.
import { type MemoryPressure, readMemoryState } from '../base/memory-pressure.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import type { Providers } from '../providers/regions.ts'
import { chooseWarmSize } from './choose-size.ts'
import { createWarmPool, type WarmPool } from './pool.ts'
import type { WarmMachineSettings } from './settings.ts'

const CLOSE_MS = 15_000

export type WarmMachinesModuleContext = ModuleBase & {
  config: WarmMachineSettings
  providers: Providers
  memory: MemoryPressure
  urls: { agents: string }
}

export function warmMachinesModule(context: WarmMachinesModuleContext) {
  const { config, log, providers, urls } = context
  const warmMachines: WarmPool = createWarmPool({ ...context, coordinatorUrl: urls.agents })
  return {
    services: { warmMachines },
    metrics: [
      {
        type: 'gauge',
        name: 'boxwood_warm_machines',
        help: 'Machines that wait for a box.',
        label: 'region',
        collect: warmMachines.countReady,
      },
    ],
    schedules: { beforeList: warmMachines.adjust },
    async prepare() {
      const { warm } = providers.inRegion(providers.defaultRegion)
      const { size, reason } = chooseWarmSize(config.warm, warm, await readMemoryState())
      log.info({ size, reason }, 'machines that are started before a box needs them')
      await warmMachines.open(size)
    },
    close: { name: 'remove the machines that wait for a box', run: warmMachines.close, timeoutMs: CLOSE_MS },
  } satisfies Module
}
