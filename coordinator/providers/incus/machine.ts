// The configuration and the devices of the instance of a box.
import { join } from 'node:path'
import { boundTier, type Tier } from '../../../shared/tiers.ts'
import { CONTAINER_PATHS, SETTINGS_FILE } from '../container/paths.ts'
import { formatSettings } from '../container/settings-file.ts'
import type { MachineSpec } from '../provider.ts'
import type { Devices } from './api.ts'
import type { Server } from './server.ts'

/** As many processes and threads as a local box may have. */
const MAX_PROCESSES = 4096

export const PATHS = {
  state: CONTAINER_PATHS.state,
  settings: join(CONTAINER_PATHS.state, SETTINGS_FILE),
  token: join(CONTAINER_PATHS.state, 'token'),
  url: join(CONTAINER_PATHS.state, 'url'),
} as const

export const DEVICE = {
  agent: 'boxwood-agent',
  socket: 'boxwood-socket',
  network: 'eth0',
  root: 'root',
} as const

/** Keys that never change. Unprivileged: root of the box is an ordinary user of the machine, and no other box has its ids. */
export const SECURITY_CONFIG = {
  'security.privileged': 'false',
  'security.nesting': 'false',
  'security.idmap.isolated': 'true',
  // The box cannot read its configuration, nor that of the server.
  'security.guestapi': 'false',
  // The coordinator starts the boxes, with their agents.
  'boot.autostart': 'false',
} as const

export const createLimits = (tier: Tier): Record<string, string> => {
  const { cpus, memoryBytes } = boundTier(tier)
  return {
    'limits.cpu': String(cpus),
    'limits.memory': String(memoryBytes),
    'limits.processes': String(MAX_PROCESSES),
  }
}

export const createRootDevice = (tier: Tier, { pool, hasQuotas }: Server): Devices => ({
  [DEVICE.root]: {
    type: 'disk',
    path: '/',
    pool: pool.name,
    ...(hasQuotas && { size: String(boundTier(tier).diskBytes) }),
  },
})

export type AgentDeviceOptions = {
  server: Server
  agentVolume: string
  /** See AgentAccess. */
  socket: Record<string, string> | null
}

/** The files of the agent, and its way to the coordinator. */
export const createAgentDevices = ({ server, agentVolume, socket }: AgentDeviceOptions): Devices => ({
  [DEVICE.agent]: {
    type: 'disk',
    pool: server.pool.name,
    source: agentVolume,
    path: CONTAINER_PATHS.agentDir,
    readonly: 'true',
  },
  ...(socket !== null && { [DEVICE.socket]: socket }),
})

/**
 * A box cannot use the MAC or IPv4 address of another one. The network of the boxes has no IPv6, for which the filter would need
 * the kernel module br_netfilter on the server.
 */
const FILTERS = { 'security.mac_filtering': 'true', 'security.ipv4_filtering': 'true' } as const

export const createDevices = (
  options: AgentDeviceOptions & { tier: Tier; network: string; hasFilters: boolean },
): Devices => ({
  ...createRootDevice(options.tier, options.server),
  [DEVICE.network]: {
    type: 'nic',
    name: 'eth0',
    network: options.network,
    'security.port_isolation': 'true',
    ...(options.hasFilters && FILTERS),
  },
  ...createAgentDevices(options),
})

/** Devices of an archive: it is never started, and must not keep the volume of an old build. */
export const NO_DEVICES: Devices = {
  [DEVICE.network]: { type: 'none' },
  [DEVICE.agent]: { type: 'none' },
  [DEVICE.socket]: { type: 'none' },
}

/** The content of the file from which the init reads the variables of the agent. */
export function createSettings(
  spec: Pick<MachineSpec, 'boxId' | 'tier'> & { url: string },
  agentSettings: Readonly<Record<string, string>>,
): string {
  const { cpus, memoryBytes, diskBytes } = boundTier(spec.tier)
  return formatSettings({
    ...agentSettings,
    BOXWOOD_URL: spec.url,
    BOXWOOD_RECONNECT_MAX_MS: '2000',
    BOXWOOD_CPUS: String(cpus),
    BOXWOOD_MEMORY_BYTES: String(memoryBytes),
    BOXWOOD_DISK_BYTES: String(diskBytes),
    BOXWOOD_NETWORK: 'own',
    BOXWOOD_PRIVATE_PIDS: '1',
  })
}

/** The variables of the init, which its commands inherit. */
export const createEnvironment = ({ boxId }: Pick<MachineSpec, 'boxId'>): Record<string, string> => ({
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: CONTAINER_PATHS.home,
  USER: 'root',
  LOGNAME: 'root',
  LANG: 'C.UTF-8',
  BOXWOOD_BOX: boxId,
  BOXWOOD_STATE: CONTAINER_PATHS.state,
  BOXWOOD_HOME: CONTAINER_PATHS.home,
  BOXWOOD_NODE: CONTAINER_PATHS.nodeDir,
  BOXWOOD_SETTINGS: PATHS.settings,
})
