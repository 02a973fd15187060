// Denies the processes of a box access to kernel keyrings, with a program in the box or with bubblewrap.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Isolation } from '../../../shared/api/boxes.ts'
import { NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { hasKeyringFilter } from '../parts/keyring-filter.ts'
import { type ProbeOptions, runProbe } from '../parts/run-probe.ts'
import { RUNTIME_FILES } from '../parts/runtime.ts'
import { getRuntimeDirInBox } from './filesystem-view.ts'

/**
 * native: agent/exec/native/confine.c, compiled. bubblewrap: the filter of system calls only, which bubblewrap loads. null:
 * there is no filter.
 */
export type Confinement = 'native' | 'bubblewrap' | null

/** What an isolation level does for the confinement. */
export type ConfinementInput = {
  /** The beginning of the command line in the box. */
  prefix: string[]
  /** The file of the filter on the host, for bubblewrap; null: bubblewrap loads no filter. */
  filterFile: string | null
}

/** Exists where the kernel has filters of system calls. */
const SECCOMP_SETTINGS = '/proc/sys/kernel/seccomp'

/** Returns the confinement at each level. Throws InconclusiveProbeError when the native part gives no answer. */
export async function probeConfinement(
  runtimeDir: string,
  onSlow: ProbeOptions['onSlow'],
): Promise<(level: Isolation['level']) => Confinement> {
  if (!hasKeyringFilter()) return () => null
  // The program may be missing, for another system, or on a file system mounted noexec.
  const options = { description: 'The probe of the filter for kernel keyrings', onSlow }
  if ((await runProbe(buildPrefix(runtimeDir), options)) === null) return () => 'native'
  return (level) => (level === 'bubblewrap' && existsSync(SECCOMP_SETTINGS) ? 'bubblewrap' : null)
}

/** @param hostDir the runtime directory on the host */
export const buildConfinement = (
  confinement: Confinement,
  level: Isolation['level'],
  hostDir: string,
): ConfinementInput => ({
  prefix: confinement === 'native' ? buildPrefix(getRuntimeDirInBox(level, hostDir)) : [],
  filterFile: confinement === 'bubblewrap' ? join(hostDir, RUNTIME_FILES.keyringFilter) : null,
})

const buildPrefix = (runtimeDir: string): string[] => [
  join(runtimeDir, NATIVE_PARTS.confinement.bundledFileName),
  join(runtimeDir, RUNTIME_FILES.keyringFilter),
]
