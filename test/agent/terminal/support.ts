// Terminal sessions without a coordinator: an in-memory client with its own terminal, in which a test reads the screen.
import type { Test } from 'tap'
import { createActivityTracker } from '../../../agent/activity-tracker.ts'
import type { AttachSocket } from '../../../agent/attach/attach-socket.ts'
import { baseEnvironment, createEnvironmentFactory } from '../../../agent/exec/environment.ts'
import type { SyncRecorder } from '../../../agent/exec/history/sync-recorder.ts'
import type { AttachOptions } from '../../../agent/terminal/client.ts'
import { createTerminalHosts } from '../../../agent/terminal/host/hosts.ts'
import { createTerminalSessions } from '../../../agent/terminal/sessions.ts'
import type { ClientMessage, ServerMessage, StdinBytes } from '../../../shared/api/attach.ts'
import type { AgentTerminalStart } from '../../../shared/api/terminal.ts'
import { systemClock } from '../../../shared/clock.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { createTerminal, writeTerminal } from '../../support/terminal-screen.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'

export type Sessions = ReturnType<typeof createSessions>

export function createSessions(
  t: Test,
  options: { recorder?: SyncRecorder; exitedSessionMs?: number; exitsFile?: string } = {},
) {
  const home = createTempDir(t, 'terminal')
  const activity = createActivityTracker(systemClock)
  const log = silentLog
  const createEnv = createEnvironmentFactory({ ...baseEnvironment(home, process.env), SHELL: '/bin/sh' })
  // without-host.test.ts runs the tests of sessions that end with the agent.
  const dir = process.env.TEST_TERMINALS === 'without-host' ? null : createTempDir(t, 'terminals')
  const hosts = dir === null ? null : createTerminalHosts({ dir, log })
  const deps = { home, clock: systemClock, log, activity, createEnv, hosts, ...options }
  const sessions = createTerminalSessions(deps)
  t.teardown(() => sessions.terminate())
  return {
    ...sessions,
    hosts,
    dir: dir ?? '',
    /** The sessions of the next agent. */
    async createNext() {
      const next = createTerminalSessions(deps)
      t.teardown(() => next.terminate())
      await next.restore()
      return next
    },
    home,
    activity,
    start: async (request: Partial<AgentTerminalStart> = {}) =>
      (await sessions.start({ session: 'test', ...request })).session,
  }
}

type ClientOptions = Partial<AttachOptions> & {
  /** Acknowledge output as it arrives. Default: true. */
  acks?: boolean
}

/** Attaches a client. Its terminal displays what the session sends. */
export function attachClient(
  session: { attach(socket: AttachSocket, options: AttachOptions): void },
  { acks = true, ...options }: ClientOptions = {},
) {
  const terminal = createTerminal(80, 24)
  const messages: ServerMessage[] = []
  const controller = new AbortController()
  let onMessage: (message: ClientMessage | StdinBytes) => void = () => undefined
  let received = options.offset ?? 0
  let receivedBytes = 0
  let screenBytes = 0
  let output = Buffer.alloc(0)
  let stalled: PromiseWithResolvers<void> | undefined

  const send = (message: ClientMessage | StdinBytes) => {
    if (!controller.signal.aborted) onMessage(message)
  }
  const ack = () => send({ type: 'ack', stdoutOffset: received, stderrOffset: 0 })
  const socket: AttachSocket = {
    signal: controller.signal,
    onMessage(handler) {
      onMessage = handler
    },
    async send(message) {
      if (controller.signal.aborted) return
      messages.push(message)
      if (message.type === 'attached') received = message.stdoutOffset
      if (message.type === 'resized') terminal.resize(message.cols, message.rows)
      if (message.type === 'screen') {
        terminal.reset()
        terminal.resize(message.cols, message.rows)
        received = message.stdoutOffset
        screenBytes = message.bytes
      }
      await stalled?.promise
    },
    async sendOutput(_channel, bytes) {
      if (controller.signal.aborted) return
      await stalled?.promise
      await writeTerminal(terminal, bytes)
      receivedBytes += bytes.length
      const ofScreen = Math.min(screenBytes, bytes.length)
      screenBytes -= ofScreen
      received += bytes.length - ofScreen
      output = Buffer.concat([output, bytes.subarray(ofScreen)]).subarray(-1_000_000)
      if (acks) ack()
    },
    close(message) {
      if (message !== undefined) messages.push(message)
      controller.abort()
    },
  }
  session.attach(socket, { isNew: false, ...options })
  return {
    terminal,
    messages,
    send,
    ack,
    disconnect: () => controller.abort(),
    isClosed: () => controller.signal.aborted,
    /** Offset up to which the output has arrived. */
    received: () => received,
    receivedBytes: () => receivedBytes,
    /** The last MB of output, without screens. */
    output: () => output.toString(),
    type: (text: string) => send({ type: 'stdinBytes', bytes: Buffer.from(text) }),
    /** The connection does not accept bytes until the returned function is called. */
    stall() {
      stalled = Promise.withResolvers()
      return stalled.resolve
    },
    find: <T extends ServerMessage['type']>(type: T) =>
      messages.findLast((message): message is Extract<ServerMessage, { type: T }> => message.type === type),
    waitForOutput: (pattern: RegExp) =>
      waitUntil(`output matches ${pattern}`, () => pattern.exec(output.toString()) ?? false),
    waitForMessage: (type: ServerMessage['type']) =>
      waitUntil(`message ${type}`, () => messages.find((message) => message.type === type) ?? false),
  }
}
