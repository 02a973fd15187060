// Connects the local terminal to a terminal session on a box until the program exits or the user leaves.

import { randomBytes } from 'node:crypto'
import type { Offsets } from '../../client/attach/format.ts'
import { attach } from '../attach/attach.ts'
import { writeOutput } from '../attach/standard-streams.ts'
import { boxCommand } from '../command-name.ts'
import type { EdgeClient } from '../connection/client.ts'
import { invalidDataError } from '../connection/server-data.ts'
import type { Session } from '../connection/session.ts'
import { CliError, type CommandResult, EXIT } from '../output/exit-codes.ts'
import { printStderr } from '../output/print.ts'
import { noSuchSessionMessage, toExitCode } from '../processes/process-messages.ts'
import { ESCAPE_HELP } from './escape-keys.ts'
import { forwardKeys } from './forward-keys.ts'
import { enterRawMode, getTerm, getTerminalSize } from './local-terminal.ts'

export type TerminalTarget = {
  /** null: the newest session. */
  session: string | null
  /** null: with the current screen. A session that was just created starts at offset 0. */
  start: Offsets | null
}

/** How long ~d waits for the server. A client that vanishes is detached too. */
const DETACH_TIMEOUT_MS = 2000

/** The user has left the session. */
class LeftSession extends Error {
  readonly isDetached: boolean
  constructor(isDetached: boolean) {
    super('left the session')
    this.isDetached = isDetached
  }
}

export async function runTerminal(
  { signal: interrupted }: Session,
  edge: EdgeClient,
  target: TerminalTarget,
): Promise<CommandResult> {
  let { session } = target
  const client = randomBytes(16).toString('hex')
  const controller = new AbortController()
  const { signal } = controller
  const onInterrupt = () => controller.abort(interrupted.reason)
  interrupted.addEventListener('abort', onInterrupt)
  if (interrupted.aborted) onInterrupt()
  /** A message may have been written over the screen. */
  let needsScreen = false

  const getQuery = (position: Offsets | null): Record<string, string> => {
    const size = getTerminalSize()
    const term = getTerm()
    return {
      create: 'never',
      client,
      ...(session !== null && { session }),
      ...(position !== null && !needsScreen && { offset: String(position.stdout) }),
      ...(size !== null && { cols: String(size.cols), rows: String(size.rows) }),
      ...(term !== undefined && { term }),
    }
  }

  const terminal = enterRawMode()
  const write = (bytes: Uint8Array) => {
    terminal.scan(bytes)
    return writeOutput('stdout', bytes, signal)
  }
  const attachment = attach({
    edge,
    route: '/terminal',
    getQuery,
    start: target.start,
    sink: {
      write: (_, bytes) => write(bytes),
      async drawScreen(bytes) {
        needsScreen = false
        await write(terminal.getClearSequence())
        await write(bytes)
      },
    },
    onAttached(message) {
      if (message.session === undefined) throw invalidDataError('the message attached without a session')
      session = message.session
    },
    signal,
    onOutage(reason) {
      needsScreen = true
      terminal.print(`box: disconnected. ${reason} Reconnecting; type ~. after a newline to leave.`)
    },
    // The connection may have been requested before the message was written, and so continue without the screen.
    onReconnect() {
      if (needsScreen) attachment.reconnect()
    },
  })
  const onResize = () => {
    const size = getTerminalSize()
    if (size !== null) attachment.resize(size)
  }
  process.stdout.on('resize', onResize)
  const stopForwarding = forwardKeys(attachment, process.stdin, (action) => {
    if (action === 'help') return terminal.print(ESCAPE_HELP)
    if (action === 'disconnect') return controller.abort(new LeftSession(false))
    attachment.detach()
    setTimeout(() => controller.abort(new LeftSession(true)), DETACH_TIMEOUT_MS).unref()
  })

  let isDetached = true
  try {
    const exit = await attachment.result
    if (exit !== null) return { exitCode: toExitCode(exit), continues: false }
  } catch (error) {
    if (!(error instanceof LeftSession)) throw toSessionError(error, edge.boxName, session)
    isDetached = error.isDetached
  } finally {
    interrupted.removeEventListener('abort', onInterrupt)
    process.stdout.off('resize', onResize)
    terminal.restore()
    stopForwarding()
  }
  const name = session ?? ''
  printStderr(
    `\n${isDetached ? 'detached' : 'disconnected'} from ${name}; attach again: ${boxCommand()} attach ${edge.boxName} ${name}`,
  )
  return { exitCode: isDetached ? EXIT.ok : EXIT.terminalFailed, continues: true }
}

function toSessionError(error: unknown, boxName: string, session: string | null): unknown {
  if (!(error instanceof CliError) || error.code !== 'not_found') return error
  const message =
    session === null
      ? `No terminal session on ${boxName}. Start one with \`box ssh ${boxName}\`.`
      : noSuchSessionMessage(boxName, session)
  return new CliError(EXIT.notFound, message, { code: 'not_found' })
}
