// Parses /proc/PID/stat: the state of a process and its start time, which identifies it together with its pid.

export type ProcStat = {
  state: string
  ppid: number
  threads: number
  /** Clock ticks since boot. */
  startTicks: number
}

/** The process name in the line may contain spaces and parentheses. Returns null when the line is not valid. */
export function parseProcStat(line: string): ProcStat | null {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const [state, ppid] = fields
  const startTicks = Number(fields[19])
  if (state === undefined || !Number.isInteger(startTicks)) return null
  return { state, ppid: Number(ppid), threads: Number(fields[17]), startTicks }
}

/** A process whose main thread has exited is shown as a zombie while its other threads run. */
export const hasExited = ({ state, threads }: ProcStat): boolean =>
  state === 'X' || (state === 'Z' && threads <= 1)
