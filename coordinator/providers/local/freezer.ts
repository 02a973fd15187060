// Freezes the processes of a cgroup: the kernel does not run them until they are thawed. Version 2 has `cgroup.freeze`
// in each cgroup (Linux 5.2), version 1 the freezer hierarchy.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { InconclusiveProbeError } from '../parts/run-probe.ts'

/** `dir`: the directory of the cgroup. */
export type Freezer = { version: 1 | 2; dir: string }

/** A process in uninterruptible sleep cannot be frozen. */
const FREEZE_TIMEOUT_MS = 5_000
const PROBE_TIMEOUT_MS = 30_000
const MAX_POLL_MS = 10

const SETTING_FILES = { 1: 'freezer.state', 2: 'cgroup.freeze' } as const

/** The first of the cgroups that can freeze. */
export function findFreezer(cgroupDirs: readonly string[]): Freezer | null {
  for (const dir of cgroupDirs) {
    for (const version of [2, 1] as const) {
      if (existsSync(join(dir, SETTING_FILES[version]))) return { version, dir }
    }
  }
  return null
}

/** Whether the cgroup is frozen, or will be as soon as the kernel can freeze every process. */
export function isFreezing({ version, dir }: Freezer): boolean {
  const setting = readFileSync(join(dir, SETTING_FILES[version]), 'utf8').trim()
  return version === 2 ? setting === '1' : setting !== 'THAWED'
}

/** Resolves when no process of the cgroup runs. Otherwise thaws the cgroup after `timeoutMs`, and returns false. */
export async function freeze(freezer: Freezer, timeoutMs = FREEZE_TIMEOUT_MS): Promise<boolean> {
  writeSetting(freezer, true)
  const deadline = performance.now() + timeoutMs
  for (let pollMs = 1; !isFrozen(freezer); pollMs = Math.min(pollMs * 2, MAX_POLL_MS)) {
    if (performance.now() > deadline) {
      thaw(freezer)
      return false
    }
    await sleep(pollMs)
    // A process that is created during the freeze can remain unfrozen, with the state FREEZING, until the next write.
    if (freezer.version === 1) writeSetting(freezer, true)
  }
  return true
}

export function thaw(freezer: Freezer): void {
  writeSetting(freezer, false)
}

/**
 * Freezes and thaws a cgroup without processes, which takes less than a millisecond. false: the kernel refuses it. Throws
 * InconclusiveProbeError when the kernel does not answer.
 */
export async function probeFreezer(freezer: Freezer, timeoutMs = PROBE_TIMEOUT_MS): Promise<boolean> {
  let isFrozen: boolean
  try {
    isFrozen = await freeze(freezer, timeoutMs)
    thaw(freezer)
  } catch {
    return false
  }
  if (isFrozen) return true
  throw new InconclusiveProbeError(
    `The kernel did not freeze the empty cgroup ${freezer.dir} within ${timeoutMs / 1000} s. Restart the coordinator.`,
  )
}

function isFrozen({ version, dir }: Freezer): boolean {
  return version === 2
    ? /^frozen 1$/m.test(readFileSync(join(dir, 'cgroup.events'), 'utf8'))
    : readFileSync(join(dir, SETTING_FILES[1]), 'utf8').trim() === 'FROZEN'
}

function writeSetting({ version, dir }: Freezer, value: boolean): void {
  const text = version === 2 ? Number(value).toString() : value ? 'FROZEN' : 'THAWED'
  writeFileSync(join(dir, SETTING_FILES[version]), text)
}
