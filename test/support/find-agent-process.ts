// Finds a box's processes and its agent among the processes of this machine.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Returns '' when the file is missing or not readable. */
function readFileOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function readExecutablePath(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    return ''
  }
}

/** The pids of the processes that have the box's id in their environment. */
export const listBoxPids = (boxId: string): number[] =>
  readdirSync('/proc')
    .filter(
      (name) =>
        /^\d+$/.test(name) && readFileOrEmpty(`/proc/${name}/environ`).includes(`BOXWOOD_BOX=${boxId}\0`),
    )
    .map(Number)

/** The pid of the Node process of the box. */
export const findAgentPid = (boxId: string): number | undefined =>
  listBoxPids(boxId).find((pid) => /\/node$/.test(readExecutablePath(pid)))

/** The process's resident set size in MiB; NaN when the process does not exist. */
export function readResidentMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileOrEmpty(`/proc/${pid}/status`))?.[1]) / 1024
}
