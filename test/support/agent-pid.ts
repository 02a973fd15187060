// Finds the agent of a box among this machine's processes, to kill or measure it.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const readable = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function program(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    return ''
  }
}

/** The pid of the process that runs Node with the box's id in its environment. */
export function agentPid(boxId: string): number | undefined {
  const pid = readdirSync('/proc').find(
    (name) =>
      /^\d+$/.test(name) &&
      /\/node$/.test(program(name)) &&
      readable(`/proc/${name}/environ`).includes(`BOXWOOD_BOX=${boxId}\0`),
  )
  return pid === undefined ? undefined : Number(pid)
}

export function residentMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readable(`/proc/${pid}/status`))?.[1]) / 1024
}
