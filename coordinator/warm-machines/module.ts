// The machines that wait for a box. A module before those that create boxes.
import { type MemoryPressure, readMemoryState } from '../base/memory-pressure.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import type { Providers } from '../providers/regions.ts'
import type { Replica } from '../replicas/replica.ts'
import { chooseWarmSize, describeWarmSize } from './choose-size.ts'
import { createWarmMetric } from './metric.ts'
import { createWarmPool, type WarmPool } from './pool.ts'
import type { WarmMachineSettings } from './settings.ts'

const CLOSE_MS = 15_000

export type WarmMachinesModuleContext = ModuleBase & {
  config: WarmMachineSettings
  providers: Providers
  memory: MemoryPressure
  replica: Pick<Replica, 'host'>
  urls: { agents: string }
}

export function warmMachinesModule(context: WarmMachinesModuleContext) {
  const { config, providers, urls } = context
  const warmMachines: WarmPool = createWarmPool({ ...context, coordinatorUrl: urls.agents })
  let description: string | null = null
  return {
    services: { warmMachines, describeWarmMachines: () => description },
    metrics: [createWarmMetric(warmMachines)],
    schedules: { beforeList: warmMachines.adjust },
    async prepare() {
      const offers = providers.all.flatMap(({ warm }) => warm ?? [])
      const warm = offers.find(({ problem }) => problem === null) ?? offers[0]
      const chosen = chooseWarmSize(config.warm, warm, await readMemoryState())
      description = describeWarmSize(chosen)
      await warmMachines.open(chosen.size)
    },
    close: { name: 'remove the machines that wait for a box', run: warmMachines.close, timeoutMs: CLOSE_MS },
  } satisfies Module
}
