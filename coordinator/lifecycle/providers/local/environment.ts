// The whole environment of a box's init and agent. Nothing of the coordinator's own is in it.
import type { MachineSpec } from '../../provider.ts'
import type { BoxPaths } from './machine-file.ts'
import { INSIDE } from './view.ts'

/** Also what the launcher, perhaps root, finds its programs by: never a folder that a box can write. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

type EnvironmentInput = {
  spec: MachineSpec
  paths: BoxPaths
  /** The box has a file-system view and process ids of its own. */
  inside: boolean
  tier: { cpus: number; memoryBytes: number }
  agentSettings: Readonly<Record<string, string>>
}

export function boxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { spec, paths, inside, tier, agentSettings } = input
  const home = inside ? INSIDE.home : paths.home
  return {
    ...agentSettings,
    PATH: SYSTEM_PATH,
    HOME: home,
    USER: 'box',
    LOGNAME: 'box',
    LANG: 'C.UTF-8',
    BOXWOOD_URL: spec.coordinatorUrl,
    BOXWOOD_BOX: spec.boxId,
    BOXWOOD_STATE: inside ? INSIDE.state : paths.state,
    BOXWOOD_HOME: home,
    // On one machine a coordinator that comes back need not be spared a crowd.
    BOXWOOD_RECONNECT_MAX_MS: '2000',
    BOXWOOD_CPUS: String(tier.cpus),
    BOXWOOD_MEMORY_BYTES: String(tier.memoryBytes),
    ...(inside ? { BOXWOOD_PRIVATE_PIDS: '1' } : { TMPDIR: paths.tmp }),
  }
}
