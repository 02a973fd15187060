// Finds the command that started a process: by the environment, which descendants inherit.
import { COMMAND_ID_PATTERN } from '../../../shared/field-values.ts'
import { PROCESS_ID_VARIABLE, readProcessEnvironment } from '../../process-table.ts'
import type { BoxProcess } from '../box-processes.ts'
import { yieldEvery } from '../yield-every.ts'

export type ProcessIds = {
  /** Pid → id of the command, for the processes that a command of the box has started. */
  find(processes: readonly BoxProcess[]): Promise<Map<number, string>>
}

/** Between fork and execve, a process has the environment of its parent. */
const READS = 2

type Known = { startTime: number; id: string | null; reads: number }

export function createProcessIds(procRoot = '/proc'): ProcessIds {
  let known = new Map<number, Known>()

  function read({ pid, startTime }: BoxProcess): Known {
    const before = known.get(pid)
    const isSame = before?.startTime === startTime
    if (isSame && (before.id !== null || before.reads >= READS)) return before
    const id = parseProcessId(readProcessEnvironment(pid, procRoot))
    return { startTime, id, reads: isSame ? before.reads + 1 : 1 }
  }

  return {
    async find(processes) {
      const latest = new Map<number, Known>()
      const ids = new Map<number, string>()
      const parentsFirst = processes.toSorted((a, b) => a.startTime - b.startTime)
      for await (const process of yieldEvery(32, parentsFirst)) {
        const entry = read(process)
        latest.set(process.pid, entry)
        // A process without the variable has the id of its parent.
        const id = entry.id ?? ids.get(process.ppid)
        if (id !== undefined) ids.set(process.pid, id)
      }
      known = latest
      return ids
    },
  }
}

function parseProcessId(environment: string | undefined): string | null {
  const prefix = `${PROCESS_ID_VARIABLE}=`
  const value = environment
    ?.split('\0')
    .find((assignment) => assignment.startsWith(prefix))
    ?.slice(prefix.length)
  return value !== undefined && COMMAND_ID_PATTERN.test(value) ? value : null
}
