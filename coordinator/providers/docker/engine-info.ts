// What an engine is, and what it can do.
import { statfs } from 'node:fs/promises'
import type { Isolation } from '../../../shared/api/boxes.ts'
import type { Capacity } from '../../../shared/tiers.ts'
import type { Engine } from './engine.ts'

export type EngineInfo = {
  version: string
  /** The machine of the engine. */
  capacity: Capacity
  limits: Isolation['limits']
  canFreeze: boolean
  /** Root in a box is another user of the machine. */
  hasUserNamespaces: boolean
  /** The engine runs as an ordinary user. */
  isRootless: boolean
  hasSeccomp: boolean
  /** The directory with the boxes, on this machine; null: it is on another one. */
  rootDir: string | null
}

type Info = {
  ServerVersion?: string
  NCPU?: number
  MemTotal?: number
  CpuCfsQuota?: boolean
  MemoryLimit?: boolean
  PidsLimit?: boolean
  CgroupVersion?: string
  DockerRootDir?: string
  SecurityOptions?: string[] | null
  /** Podman has this field in place of the security option of Docker. */
  Rootless?: boolean
}

const TIMEOUT_MS = 10_000

/** @param isLocal the directories of the engine are on this machine */
export async function readEngineInfo({ http, kind }: Engine, isLocal: boolean): Promise<EngineInfo> {
  const info = await http.json<Info>({ method: 'GET', path: '/info', timeoutMs: TIMEOUT_MS })
  const options = (info.SecurityOptions ?? []).map((option) => option.split(',')[0])
  const isRootless = info.Rootless === true || options.includes('name=rootless')
  // Podman without root has no limits with version 1 of the cgroups, whatever it says.
  const isLimited = !(kind === 'podman' && isRootless && info.CgroupVersion !== '2')
  const limits = [
    info.CpuCfsQuota ? (['cpu'] as const) : [],
    info.MemoryLimit ? (['memory'] as const) : [],
    info.PidsLimit ? (['pids'] as const) : [],
  ].flat()
  return {
    version: info.ServerVersion ?? 'unknown',
    capacity: {
      cpus: info.NCPU ?? 1,
      memoryBytes: info.MemTotal ?? Number.MAX_SAFE_INTEGER,
      diskBytes: await readDiskBytes(isLocal ? info.DockerRootDir : undefined),
    },
    limits: isLimited ? limits : [],
    canFreeze: isLimited,
    hasUserNamespaces: isRootless || options.includes('name=userns'),
    isRootless,
    hasSeccomp: options.includes('name=seccomp'),
    rootDir: isLocal ? (info.DockerRootDir ?? null) : null,
  }
}

async function readDiskBytes(dir: string | undefined): Promise<number> {
  if (dir === undefined) return Number.MAX_SAFE_INTEGER
  try {
    const { blocks, bsize } = await statfs(dir)
    return blocks * bsize
  } catch {
    // The directory is in another mount namespace.
    return Number.MAX_SAFE_INTEGER
  }
}
