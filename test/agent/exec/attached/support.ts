// An agent with attached commands, and an in-memory client.
import type { Test } from 'tap'
import type { AttachSocket } from '../../../../agent/attach/attach-socket.ts'
import { createAttachments } from '../../../../agent/exec/attached/attachments.ts'
import { serveAttachedClient } from '../../../../agent/exec/attached/serve-client.ts'
import type { ClientMessage, ServerMessage, StdinBytes } from '../../../../shared/api/attach.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createHome, openAgent } from '../detached/support.ts'

/** @param home of an earlier agent, which must be closed */
export async function openAttachedAgent(
  t: Test,
  home: string = createHome(t),
  options: Parameters<typeof openAgent>[2] = {},
) {
  const agent = await openAgent(t, home, options)
  const recorded: string[] = []
  const attachments = createAttachments({
    processes: agent.processes,
    log: agent.log,
    waitUntilRecorded: async (processId) => void recorded.push(processId),
  })
  t.teardown(() => attachments.close())
  return {
    ...agent,
    attachments,
    recorded,
    start: (command: string, fields: object = {}) => agent.start(command, { attached: true, ...fields }),
    connect(processId: string, from = { stdout: 0, stderr: 0 }) {
      const client = createClient()
      void serveAttachedClient(attachments.get(processId), client.socket, from, agent.log)
      t.teardown(client.cut)
      return client
    },
    async stop() {
      attachments.close()
      await agent.close()
    },
  }
}

export function createClient() {
  const sent: ServerMessage[] = []
  const output = { stdout: '', stderr: '' }
  const closed = new AbortController()
  let handler: (message: ClientMessage | StdinBytes) => void = () => undefined
  const socket: AttachSocket = {
    async send(message) {
      if (!closed.signal.aborted) sent.push(message)
    },
    async sendOutput(channel, bytes) {
      if (!closed.signal.aborted) output[channel] += bytes.toString('latin1')
    },
    onMessage(callback) {
      handler = callback
    },
    close(message) {
      if (message !== undefined) sent.push(message)
      closed.abort()
    },
    signal: closed.signal,
  }
  const find = <T extends ServerMessage['type']>(type: T) =>
    sent.find((message): message is Extract<ServerMessage, { type: T }> => message.type === type)
  return {
    socket,
    sent,
    output,
    find,
    receive: (message: ClientMessage | StdinBytes) => handler(message),
    receiveStdin: (text: string) => handler({ type: 'stdinBytes', bytes: Buffer.from(text) }),
    cut: () => closed.abort(),
    waitFor: <T extends ServerMessage['type']>(type: T) => waitUntil(`a message ${type}`, () => find(type)),
  }
}
