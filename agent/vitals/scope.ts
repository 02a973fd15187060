// Decides which figures of this machine belong to the box. A figure of the host is never reported as one of the box.
import type { Membership } from './box-processes.ts'
import { findOwnCgroup, type OwnCgroup } from './usage/cgroup.ts'

/**
 * - shared-host: other boxes run on the same kernel. The figures are those of the box's processes; the limits are
 *   those of the tier.
 * - container: the figures and limits of the box's cgroup.
 * - machine: the box is the whole machine.
 */
export type ScopeKind = 'shared-host' | 'container' | 'machine'

export type Scope = {
  kind: ScopeKind
  /** How to recognise the box's processes; null: every process in the process table belongs to the box. */
  membership: Membership | null
  /** The CPUs, memory and disk space of the box; null: those of the machine, or unknown. */
  cpus: number | null
  memoryBytes: number | null
  diskBytes: number | null
  /** Whether the network interfaces belong to the box only. */
  ownNetwork: boolean
  /** null: the box is not a container. */
  cgroup: OwnCgroup | null
}

export type ScopeInput = {
  boxId: string
  /**
   * The local provider sets BOXWOOD_CPUS, BOXWOOD_MEMORY_BYTES, BOXWOOD_DISK_BYTES, BOXWOOD_NETWORK (own, host),
   * BOXWOOD_PRIVATE_PIDS=1 where the box has its own PID namespace, BOXWOOD_OWN_UID=1 where it has its own uid, and
   * BOXWOOD_CGROUP where it has its own cgroup and no PID namespace.
   */
  env: Record<string, string | undefined>
  procRoot?: string
  cgroupRoot?: string
}

export function readScope({
  boxId,
  env,
  procRoot = '/proc',
  cgroupRoot = '/sys/fs/cgroup',
}: ScopeInput): Scope {
  const cpus = parsePositive(env.BOXWOOD_CPUS)
  const diskBytes = parsePositive(env.BOXWOOD_DISK_BYTES)
  const ownNetwork = env.BOXWOOD_NETWORK === 'own'
  if (cpus !== null) {
    const ownUid = env.BOXWOOD_OWN_UID === '1' ? (process.getuid?.() ?? null) : null
    const membership =
      env.BOXWOOD_PRIVATE_PIDS === '1' ? null : { boxId, ownUid, cgroupDir: env.BOXWOOD_CGROUP }
    const memoryBytes = parsePositive(env.BOXWOOD_MEMORY_BYTES)
    return { kind: 'shared-host', membership, cpus, memoryBytes, diskBytes, ownNetwork, cgroup: null }
  }
  const cgroup = findOwnCgroup(procRoot, cgroupRoot)
  if (cgroup !== null) {
    const { cpus, memoryBytes } = cgroup
    return { kind: 'container', membership: null, cpus, memoryBytes, diskBytes, ownNetwork, cgroup }
  }
  const unlimited = { cpus: null, memoryBytes: null, diskBytes: null }
  return { kind: 'machine', membership: null, ...unlimited, ownNetwork: true, cgroup: null }
}

function parsePositive(text: string | undefined): number | null {
  const value = Number(text)
  return Number.isFinite(value) && value > 0 ? value : null
}
