// The complete environment of a box's init and agent. Nothing of the coordinator's own environment is passed on.
import type { MachineSpec } from '../../provider.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import type { BoxPaths } from './machine-file.ts'

/** Also the PATH of the launcher, which may run as root: never add a directory that a box can write to. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

type EnvironmentInput = {
  spec: MachineSpec
  paths: BoxPaths
  /** The box has its own file-system view and process ids. */
  isNamespaced: boolean
  tier: { cpus: number; memoryBytes: number }
  agentSettings: Readonly<Record<string, string>>
}

export function createBoxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { spec, paths, isNamespaced, tier, agentSettings } = input
  const home = isNamespaced ? VIEW_PATHS.home : paths.home
  return {
    ...agentSettings,
    PATH: SYSTEM_PATH,
    HOME: home,
    USER: 'box',
    LOGNAME: 'box',
    LANG: 'C.UTF-8',
    BOXWOOD_URL: spec.coordinatorUrl,
    BOXWOOD_BOX: spec.boxId,
    BOXWOOD_STATE: isNamespaced ? VIEW_PATHS.state : paths.state,
    BOXWOOD_HOME: home,
    // The boxes of one machine are few enough to reconnect to a restarted coordinator almost at the same time.
    BOXWOOD_RECONNECT_MAX_MS: '2000',
    BOXWOOD_CPUS: String(tier.cpus),
    BOXWOOD_MEMORY_BYTES: String(tier.memoryBytes),
    ...(isNamespaced ? { BOXWOOD_PRIVATE_PIDS: '1' } : { TMPDIR: paths.tmp }),
  }
}
