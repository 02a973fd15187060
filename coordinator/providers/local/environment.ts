// Builds all environment variables of a box's init and agent. They inherit none from the coordinator.
import { join } from 'node:path'
import type { Isolation } from '../../../shared/api/boxes.ts'
import type { Capacity } from '../../../shared/tiers.ts'
import { NEEDS_ROOT_DIR } from '../parts/root-programs.ts'
import { SYSTEM_PATH } from '../parts/system-path.ts'
import type { MachineSpec } from '../provider.ts'
import { VIEW_PATHS } from './filesystem-view.ts'
import type { BoxPaths } from './machine-file.ts'

/** An entry in the environment of every process of the box, unless the box removed it. */
export const environmentMarker = (boxId: string): string => `BOXWOOD_BOX=${boxId}`

type EnvironmentInput = {
  spec: MachineSpec
  paths: BoxPaths
  /** The box has its own file-system view and process ids. */
  isNamespaced: boolean
  /** The box has a uid that no other box has. */
  hasOwnUid: boolean
  network: Isolation['network']
  /** The current runtime directory as the box sees it. */
  runtimeDir: string
  size: Capacity
  /** The directories of the box's cgroups, which contain the same processes. */
  cgroupDirs: readonly string[]
  /** The CPU limit is enforced. */
  isCpuLimited: boolean
  /** Environment variables that configure the agent. */
  agentSettings: Readonly<Record<string, string>>
}

export function createBoxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { spec, paths, isNamespaced, hasOwnUid, network, runtimeDir, size } = input
  const { cgroupDirs, isCpuLimited, agentSettings } = input
  const home = isNamespaced ? VIEW_PATHS.home : paths.home
  // Without them the box runs as the coordinator's user, who may be allowed to use sudo.
  const canBeRoot = !isNamespaced && !hasOwnUid
  return {
    ...agentSettings,
    PATH: SYSTEM_PATH,
    // The init adds it to the PATH of the agent, and ~/.profile to that of login shells.
    ...(canBeRoot ? {} : { BOXWOOD_PROGRAMS: join(runtimeDir, NEEDS_ROOT_DIR) }),
    HOME: home,
    USER: 'box',
    LOGNAME: 'box',
    LANG: 'C.UTF-8',
    BOXWOOD_URL: spec.coordinatorUrl,
    BOXWOOD_BOX: spec.boxId,
    BOXWOOD_STATE: isNamespaced ? VIEW_PATHS.state : paths.state,
    BOXWOOD_HOME: home,
    // One machine has few boxes, so all agents can reconnect within 2 s of a coordinator restart.
    BOXWOOD_RECONNECT_MAX_MS: '2000',
    BOXWOOD_CPUS: String(size.cpus),
    BOXWOOD_MEMORY_BYTES: String(size.memoryBytes),
    BOXWOOD_DISK_BYTES: String(size.diskBytes),
    // nproc prints this value, and OpenMP programs start as many threads. The kernel names the CPUs of the machine.
    ...(isCpuLimited ? { OMP_NUM_THREADS: String(size.cpus) } : {}),
    BOXWOOD_NETWORK: network,
    ...(hasOwnUid ? { BOXWOOD_OWN_UID: '1' } : {}),
    ...packageManagerVariables(isNamespaced ? '/etc' : paths.etc),
    ...(isNamespaced ? { BOXWOOD_PRIVATE_PIDS: '1' } : { TMPDIR: paths.tmp }),
    // Where the agent sees the processes of other boxes, it reads which ones are in its cgroup.
    ...(isNamespaced || cgroupDirs[0] === undefined ? {} : { BOXWOOD_CGROUP: cgroupDirs[0] }),
  }
}

/** pip and npm install into the home directory, which pipx, cargo and go do by default. */
const packageManagerVariables = (etcDir: string): Record<string, string> => ({
  // pip installs into ~/.local when it cannot write to the system's directory. It then also needs this permission where
  // the distribution protects its Python packages (PEP 668). PIP_USER=1 would break pip in virtual environments.
  PIP_BREAK_SYSTEM_PACKAGES: '1',
  // Sets the prefix. nvm refuses to work when NPM_CONFIG_PREFIX or ~/.npmrc sets it.
  NPM_CONFIG_GLOBALCONFIG: join(etcDir, 'npmrc'),
})
