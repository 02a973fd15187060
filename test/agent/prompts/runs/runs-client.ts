// Starts runs-process.ts, sends requests and kills the process.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { RunState, StartRunOptions } from '../../../../agent/prompts/types.ts'
import type { PromptEvents } from '../../../../shared/api/prompts.ts'

export type Request = { number: number } & RequestFields
type RequestFields =
  | { kind: 'start'; options: StartRunOptions }
  | { kind: 'get' | 'interrupt'; id: string }
  | { kind: 'read'; id: string; after: number }
export type Reply = { number: number; value?: unknown; error?: string }

/** Resolves when the process has restored its runs. A request is rejected when the process exits before the reply. */
export async function startRunsProcess(t: Test, home: string) {
  const child = fork(join(import.meta.dirname, 'runs-process.ts'), {
    // createHome() kills all processes with this HOME.
    env: { PATH: process.env.PATH ?? '', HOME: home },
    execArgv: [],
  })
  const exited = once(child, 'exit')
  const pending = new Map<number, (reply: Reply) => void>()
  child.on('message', (reply: Reply) => pending.get(reply.number)?.(reply))
  child.on('exit', () => {
    for (const resolve of pending.values()) resolve({ number: 0, error: 'killed' })
  })
  const waitForReply = (number: number) => {
    const { promise, resolve } = Promise.withResolvers<Reply>()
    pending.set(number, resolve)
    return promise
  }
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  t.teardown(kill)
  const ready = await waitForReply(0)
  if (ready.error !== undefined) throw new Error('the process exited before it was ready')
  let count = 0
  const request = async (fields: RequestFields): Promise<unknown> => {
    count += 1
    const reply = waitForReply(count)
    if (child.connected) child.send({ ...fields, number: count })
    const { value, error } = await reply
    if (error !== undefined) throw new Error(error)
    return value
  }
  return {
    kill,
    start: (options: StartRunOptions) => request({ kind: 'start', options }) as Promise<RunState>,
    get: (id: string) => request({ kind: 'get', id }) as Promise<RunState | null>,
    read: (id: string, after: number) => request({ kind: 'read', id, after }) as Promise<PromptEvents>,
    interrupt: (id: string) => request({ kind: 'interrupt', id }),
  }
}
