// A detached process whose output is in memory, with a bounded log.
import { EventEmitter } from 'node:events'
import { firstRetainedOffset } from '../../../../agent/exec/detached/log-bounds.ts'
import type { DetachedProcess, OutputLog, ProcessExit } from '../../../../agent/exec/detached/types.ts'

/** @param maxBytes bound of the log */
export function createFakeProcess(maxBytes: number, startedAt = 1000) {
  const events = new EventEmitter().setMaxListeners(0)
  let content = Buffer.alloc(0)
  let exit: ProcessExit | null = null
  let bytesRead = 0
  const on = (name: string, callback: () => void) => {
    events.on(name, callback)
    return () => void events.off(name, callback)
  }
  const getHead = () => firstRetainedOffset(content.length, maxBytes)
  const stdout: OutputLog = {
    path: '/nonexistent/stdout',
    size: async () => content.length,
    async read(from, max) {
      const offset = Math.max(from, getHead())
      const bytes = Buffer.from(content.subarray(offset, offset + max))
      bytesRead += bytes.length
      return { offset, bytes }
    },
    openTimes: () => null,
    watch: (onChange) => on('change', onChange),
  }
  const detachedProcess: DetachedProcess = {
    processId: 'p_0',
    pid: 1,
    command: '',
    cwd: '~',
    startedAt,
    record: null,
    attached: null,
    dir: '/nonexistent',
    logs: { stdout, stderr: stdout },
    get exit() {
      return exit
    },
    onExit: (callback) => on('exit', callback),
  }
  return {
    detachedProcess,
    output: stdout,
    getHead,
    getSize: () => content.length,
    /** Since the last call. */
    takeBytesRead() {
      const bytes = bytesRead
      bytesRead = 0
      return bytes
    },
    append(bytes: string | Buffer) {
      content = Buffer.concat([content, Buffer.from(bytes)])
      events.emit('change')
    },
    exit() {
      exit = { status: 'exited', exitCode: 0, signal: null, finishedAt: startedAt + 1 }
      events.emit('exit')
    },
  }
}
export type FakeProcess = ReturnType<typeof createFakeProcess>
