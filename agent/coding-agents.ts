// The coding agents of a box: the detector of their programs and credentials, and the prompts that they run.
import type { Logger } from 'pino'
import {
  createProviderDetector,
  type WatchingProviderDetector,
} from './prompts/detection/provider-detector.ts'
import { type OpenPromptsOptions, openPrompts } from './prompts/open-prompts.ts'
import { providers } from './prompts/providers/providers.ts'
import type { Prompts } from './prompts/types.ts'

export type CodingAgentsOptions = Omit<OpenPromptsOptions, 'detector'> & {
  log: Logger
  /** Without the variables of the broker: the processes of runs get them anyway. */
  baseEnv: Record<string, string>
}

export type CodingAgents = {
  detector: WatchingProviderDetector
  prompts: Prompts
  close(): Promise<void>
}

export async function openCodingAgents(options: CodingAgentsOptions): Promise<CodingAgents> {
  const { home, baseEnv, clock, log, spawnerKind = null } = options
  const detector = await createProviderDetector({ home, baseEnv, providers, clock, log, spawnerKind })
  const prompts = await openPrompts({ ...options, detector })
  return {
    detector,
    prompts,
    async close() {
      // The detector closes first: the start of a run may wait for it.
      await detector.close()
      await prompts.close()
    },
  }
}
