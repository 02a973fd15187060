// Finds a box's agent among the processes of this machine, to kill it or to measure its memory.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Returns '' when the file is missing or not readable. */
function readFileOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function readExecutablePath(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    return ''
  }
}

/** The pid of the Node process that has the box's id in its environment. */
export function findAgentPid(boxId: string): number | undefined {
  const pid = readdirSync('/proc').find(
    (name) =>
      /^\d+$/.test(name) &&
      /\/node$/.test(readExecutablePath(name)) &&
      readFileOrEmpty(`/proc/${name}/environ`).includes(`BOXWOOD_BOX=${boxId}\0`),
  )
  return pid === undefined ? undefined : Number(pid)
}

/** The process's resident set size in MiB; NaN when the process does not exist. */
export function readResidentMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileOrEmpty(`/proc/${pid}/status`))?.[1]) / 1024
}
